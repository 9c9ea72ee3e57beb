"""The configuration a run uses, from the committed stack file and the lab's facts."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from metal_ipi.stacks.sections.base import LONGEST_TEXT
from tools import stackfile
from tools.errors import StackError

_AUTHORITY = Path(__file__).parents[1] / "golden" / "boot.ipxe"
"""Any file will do."""
FACTS: dict[str, Any] = {
    "machines": "simulated",
    "api": {"token": "api-token", "project_id": "project", "metro": "lb"},
    "ca_path": "/lab/ca.pem",
    "dns": {
        "server": "192.0.2.53",
        "zone": "facility.test",
        "tsig": {"name": "metal-ipi.", "algorithm": "hmac-sha256", "secret": "tsig-secret"},
    },
    "artifacts": {
        "host": "boot.facility.test",
        "port": 22,
        "user": "upload",
        "host_key": "ssh-ed25519 AAAA",
        "private_key": "private-key",
        "directory": "/artifacts",
        "base_url": "https://boot.facility.test/artifacts",
        "boot_base_url": "http://boot.facility.test/artifacts",
        "ca_path": str(_AUTHORITY),
    },
    "boot": {"stream_url": "http://boot.facility.test/streams/lab.json"},
    "installer": "/lab/openshift-install",
    "release": "4.19.0-lab",
}
LAB = yaml.safe_load(
    """
encryptionsalt: v1:x
config:
  metal-ipi:lab: {machines: libvirt}
  metal-ipi:platform: {type: equinix-metal, metro: lb}
  metal-ipi:dns: {type: rfc2136, ttl: 2}
  metal-ipi:boot: {consoles: [ttyS0]}
  metal-ipi:openshiftVersion: 4.19.0-lab
"""
)


def test_the_lab_fills_in_what_it_knows_and_keeps_what_the_file_says() -> None:
    config = stackfile.for_lab(LAB, FACTS)

    tree = config.document["config"]
    assert "encryptionsalt" not in config.document
    assert tree["metal-ipi:lab"] == {"machines": "simulated"}
    assert tree["metal-ipi:platform"] == {"type": "equinix-metal", "metro": "lb", "projectId": "project"}
    assert tree["metal-ipi:dns"]["ttl"] == 2
    assert tree["metal-ipi:dns"]["tsig"] == {"name": "metal-ipi.", "algorithm": "hmac-sha256"}
    assert tree["metal-ipi:boot"] == {"consoles": ["ttyS0"], "streamUrl": FACTS["boot"]["stream_url"]}
    assert tree["metal-ipi:install"] == {"installer": "/lab/openshift-install"}
    assert tree["metal-ipi:artifacts"]["hostKey"] == "ssh-ed25519 AAAA"
    assert tree["metal-ipi:artifacts"]["caBundle"] == _AUTHORITY.read_text()


def test_the_labs_secrets_stand_in_no_document() -> None:
    config = stackfile.for_lab(LAB, FACTS)

    assert config.secrets == {
        "metal-ipi:platform.authToken": "api-token",
        "metal-ipi:dns.tsig.secret": "tsig-secret",
        "metal-ipi:artifacts.privateKey": "private-key",
    }
    for secret in config.secrets.values():
        assert secret not in str(config.document)
        assert secret not in repr(config)


def test_nodes_of_a_real_release_are_installed_on_a_disk() -> None:
    config = stackfile.for_lab(LAB, {**FACTS, "release": "4.19.0"}).document["config"]
    assert config["metal-ipi:openshiftVersion"] == "4.19.0"
    assert config["metal-ipi:boot"]["install"] == {"image": "stream", "device": {"smallest": True}}
    own = {**LAB, "config": {**LAB["config"], "metal-ipi:openshiftVersion": "4.18.7"}}
    own["config"]["metal-ipi:boot"] = {"install": {"image": "stream", "device": "/dev/sdb"}}
    config = stackfile.for_lab(own, {**FACTS, "release": "4.19.0"}).document["config"]
    assert config["metal-ipi:openshiftVersion"] == "4.18.7", "what the file asks for is not changed: the gates tell"
    assert config["metal-ipi:boot"]["install"]["device"] == "/dev/sdb"


def test_a_stack_that_asks_for_a_real_release_gets_the_real_installer() -> None:
    assert stackfile.lab_installer(LAB) == "stand-in"
    assert stackfile.lab_installer({"config": {"metal-ipi:openshiftVersion": "4.19.0"}}) == "real"
    says = {"metal-ipi:openshiftVersion": "4.19.0-lab", "metal-ipi:lab": {"installer": "real"}}
    assert stackfile.lab_installer({"config": says}) == "real"


def test_a_project_of_before_is_read_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make preview-report` rehearses the commit that it compares with by its own `stacks`, and by these tools."""
    monkeypatch.setitem(sys.modules, "metal_ipi.stacks.plain", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "stacks").mkdir()
    file = tmp_path / "stacks" / "Pulumi.old.yaml"
    file.write_text("config: {}\n")
    assert stackfile.read(file) == {"config": {}}


def test_the_committed_document_is_not_changed() -> None:
    before = yaml.safe_dump(LAB)
    stackfile.for_lab(LAB, FACTS)
    stackfile.for_rehearsal(LAB)
    assert yaml.safe_dump(LAB) == before


def test_a_rehearsal_needs_no_key() -> None:
    document = {
        "encryptionsalt": "v1:x",
        "config": {
            "metal-ipi:platform": {"authToken": {"secure": "v1:abc"}, "metro": "da"},
            "metal-ipi:keys": [{"secure": "v1:def"}, "plain"],
        },
    }
    assert stackfile.for_rehearsal(document).document == {
        "config": {
            "metal-ipi:platform": {"authToken": "rehearsal", "metro": "da"},
            "metal-ipi:keys": ["rehearsal", "plain"],
            "metal-ipi:rehearsal": True,
        }
    }


def test_a_facilitys_salt_goes_only_where_nothing_needs_it() -> None:
    plain = {"encryptionsalt": "v1:x", "config": {"metal-ipi:a": 1}}
    locked = {"encryptionsalt": "v1:x", "config": {"metal-ipi:a": {"b": [{"secure": "v1:abc"}]}}}
    assert stackfile.has_secrets(locked)
    assert not stackfile.has_secrets(plain)
    assert stackfile.for_facility(plain).document == {"config": {"metal-ipi:a": 1}}
    assert stackfile.for_facility(locked).document == locked


@pytest.mark.parametrize(
    ("config", "machines"),
    [
        ({}, None),
        ({"metal-ipi:lab": {"machines": "simulated"}}, "simulated"),
        ({"metal-ipi:lab": {}}, "libvirt"),
        ({"metal-ipi:lab": True}, "libvirt"),
    ],
)
def test_which_stacks_run_in_the_lab(config: dict[str, Any], machines: str | None) -> None:
    assert stackfile.lab_machines({"config": config}) == machines


def test_a_stack_without_a_file_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.lab.yaml").write_text("config: {}")
    with pytest.raises(StackError, match=r"no stack 'x'[\s\S]*use one of lab"):
        stackfile.read(tmp_path / "Pulumi.x.yaml")


@pytest.mark.parametrize("text", ["- a list", "config: [1]", "config: {"])
def test_a_file_that_is_no_stack_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(text)
    with pytest.raises(StackError, match=r"stacks/Pulumi\.x\.yaml is n"):
        stackfile.read(file)


def test_a_rack_fills_in_the_servers_in_their_order() -> None:
    known = [
        {
            "name": f"server-{number}",
            "bmc": {"address": f"https://192.0.2.{65 + number}", "username": "admin", "password": f"password-{number}"},
            "mac": f"52:54:00:00:00:0{number}",
            "address": f"192.0.2.{97 + number}",
        }
        for number in range(3)
    ]
    facts = {**FACTS, "api": None, "ca_path": str(_AUTHORITY), "rack": {"servers": known}}
    servers = [{"name": "control-plane-0"}, {"name": "worker-0", "address": "192.0.2.120", "consent": "wipe"}]
    document = {"config": {"metal-ipi:platform": {"type": "redfish", "servers": servers}}}

    config = stackfile.for_lab(document, facts)

    assert stackfile.rack(document) == 2
    platform = config.document["config"]["metal-ipi:platform"]
    assert platform["bmc"] == {"ca": _AUTHORITY.read_text()}
    assert platform["servers"] == [
        {
            "name": "control-plane-0",
            "bmc": {"address": "https://192.0.2.65", "username": "admin"},
            "mac": "52:54:00:00:00:00",
            "address": "192.0.2.97",
        },
        {
            "name": "worker-0",
            "bmc": {"address": "https://192.0.2.66", "username": "admin"},
            "mac": "52:54:00:00:00:01",
            "address": "192.0.2.120",
            "consent": "wipe",
        },
    ]
    assert config.secrets["metal-ipi:platform.servers[1].bmc.password"] == "password-1"
    assert "metal-ipi:platform.authToken" not in config.secrets
    assert "password" not in str(config.document)
    assert document["config"]["metal-ipi:platform"]["servers"] == servers


def test_a_rack_that_is_too_small_is_told() -> None:
    document = {"config": {"metal-ipi:platform": {"type": "redfish", "servers": [{"name": "control-plane-0"}]}}}
    with pytest.raises(StackError, match="the lab's rack has 0 servers, and the stack names 1"):
        stackfile.for_lab(document, {**FACTS, "api": None, "rack": {"servers": []}})


def _vm_stack(**bootstrap: Any) -> stackfile.Tree:
    platform = {"type": "redfish", "servers": [], "bootstrap": {"type": "local-vm", **bootstrap}}
    return {"config": {"metal-ipi:platform": platform}}


def test_a_virtual_bootstrap_machine_is_one_of_the_labs_libvirt() -> None:
    place = {"uri": "qemu+tcp://127.0.0.1/system", "bridge": "facility0", "mac": "52:54:00:00:00:ff"}
    rack: dict[str, Any] = {"servers": [], "guest": {**place, "address": "192.0.2.126"}}
    facts = {**FACTS, "api": None, "ca_path": str(_AUTHORITY), "rack": rack}
    document = _vm_stack(memory=2048, address="192.0.2.125")
    document["config"]["metal-ipi:platform"]["servers"] = [{"name": "control-plane-0"}]
    rack["servers"] = [{"bmc": {"address": "a", "username": "b", "password": "c"}, "mac": "m", "address": "d"}]

    config = stackfile.for_lab(document, facts)

    assert config.document["config"]["metal-ipi:platform"]["bootstrap"] == {
        "type": "local-vm",
        **place,
        "address": "192.0.2.125",
        "memory": 2048,
    }
    rack["guest"] = None
    with pytest.raises(StackError, match=r"of type local-vm, and simulated machines have no libvirt"):
        stackfile.for_lab(document, facts)


def test_servers_of_ironic_s_are_reached_by_what_the_hubs_stack_tells() -> None:
    known = {"bmc": {"address": "https://192.0.2.65", "username": "admin", "password": "p"}, "mac": "m", "address": "a"}
    servers = [{"name": "control-plane-0", "driver": "redfish"}]
    platform = {"type": "ironic", "api": {"endpoint": "https://ironic.test"}, "servers": servers}
    document = {"config": {"metal-ipi:lab": {"hub": "hub"}, "metal-ipi:platform": platform}}
    told = {"endpoint": "https://192.0.2.15:31385", "username": "api-1", "ca": "pem"}
    facts = {**FACTS, "api": None, "ca_path": str(_AUTHORITY), "rack": {"servers": [known]}}

    config = stackfile.for_lab(document, facts, {"ironic": told, "ironicPassword": "secret"})

    assert (stackfile.hub_of(document), stackfile.hub_of(LAB), stackfile.rack(document)) == ("hub", None, 1)
    found = config.document["config"]["metal-ipi:platform"]
    assert found["api"] == {"endpoint": "https://ironic.test", "username": "api-1", "ca": "pem"}
    assert found["servers"][0]["bmc"] == {"address": "https://192.0.2.65", "username": "admin"}
    assert "bmc" not in found, "the conductors have their authorities from the hub's stack"
    paths = ("metal-ipi:platform.api.password", "metal-ipi:platform.servers[0].bmc.password")
    assert [config.secrets[path] for path in paths] == ["secret", "p"]


@pytest.mark.parametrize(
    ("document", "simulated", "libvirt"),
    [
        (LAB, "", ""),
        (_vm_stack(), "local-vm", ""),
        ({"config": {"metal-ipi:platform": {"type": "redfish", "bootstrap": {"type": "lend"}}}}, "", ""),
        ({"config": {"metal-ipi:apiAddress": {"type": "kube-vip"}}}, "none can have the address", ""),
        ({"config": {"metal-ipi:ingressAddress": {"type": "kube-vip"}}}, "none can have the address", ""),
        ({"config": {"metal-ipi:apiAddress": {"type": "platform"}}}, "", "simulated machines only"),
        ({"config": {"metal-ipi:boot": {"architecture": "aarch64"}}}, "", "not x86_64"),
        ({"config": {"metal-ipi:boot": {"architecture": "x86_64"}}}, "", ""),
        ({"config": {"metal-ipi:serviceAddresses": {"type": "metallb-bgp"}}}, "no catalogue", "no catalogue"),
        ({"config": {"metal-ipi:serviceAddresses": {"type": "metallb-l2", "install": True}}}, *["no catalogue"] * 2),
        (
            {"config": {"metal-ipi:dayTwo": {"catalog": "x"}, "metal-ipi:lab": {"kubernetes": "small"}}},
            *["do not run operators"] * 2,
        ),
        ({"config": {"metal-ipi:serviceAddresses": {"type": "metallb-bgp", "install": False}}}, "", ""),
        ({"config": {"metal-ipi:serviceAddresses": {"type": "none"}}}, "", ""),
        ({"config": {"metal-ipi:lab": {"disconnected": True}}}, *["is outside"] * 2),
    ],
)
def test_what_machines_of_a_kind_cannot_do(document: stackfile.Tree, simulated: str, libvirt: str) -> None:
    for machines, told in (("simulated", simulated), ("libvirt", libvirt)):
        found = stackfile.obstacle(document, machines)
        assert told in found.why and told and found.remedy if found else not told


def test_a_site_that_is_disconnected_tells_of_its_registry() -> None:
    mirror = {"registry": "mirror.test:5000", "username": "u", "password": "p", "release_image": "quay.io/r@sha256:1"}
    found = stackfile.for_lab(LAB, {**FACTS, "mirror": mirror})
    config = found.document["config"]
    assert config["metal-ipi:installConfig"] == {"additionalTrustBundle": _AUTHORITY.read_text()}
    assert config["metal-ipi:install"]["releaseImage"] == "quay.io/r@sha256:1"
    assert found.secrets["metal-ipi:install.pullSecret"] == '{"auths": {"mirror.test:5000": {"auth": "dTpw"}}}'


def test_a_stack_that_makes_its_project_is_told_the_organization() -> None:
    platform = {"type": "equinix-metal", "metro": "lb", "projectName": "p"}
    document = {"config": {**LAB["config"], "metal-ipi:platform": platform}}
    facts = {**FACTS, "api": {**FACTS["api"], "organization_id": "organization"}}
    found = stackfile.for_lab(document, facts).document["config"]["metal-ipi:platform"]
    assert found == {**platform, "organizationId": "organization"}


def test_what_the_lab_is_to_reserve() -> None:
    reserved = {"config": {"metal-ipi:lab": {"reservations": {"id": "c3.small.x86"}}}}
    assert stackfile.reservations(reserved) == {"id": "c3.small.x86"}
    assert stackfile.reservations(LAB) == {} == stackfile.reservations({"config": {}})


@pytest.mark.parametrize(
    ("value", "protect"), [(True, True), (False, False), ("true", True), ("False", False), (None, None), ("no", None)]
)
def test_what_the_file_says_of_protection(value: Any, protect: bool | None) -> None:
    assert stackfile.protect({"config": {"metal-ipi:protect": value}}) is protect
    assert stackfile.protect({"config": {}}) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("config: {'metal-ipi:workers': {count: .nan}}", "config.metal-ipi:workers.count: it is not a number"),
        ("config: {'metal-ipi:workers': {count: -.inf}}", "config.metal-ipi:workers.count: it is not a number"),
        ("config: {'metal-ipi:workers': {count: 1" + "0" * 400 + "}}", "is larger than any setting allows"),
        ("config: {'metal-ipi:workers': {count: " + "9" * 5000 + "}}", "is not YAML"),
        (
            "config: {'metal-ipi:clusterName': " + "x" * (LONGEST_TEXT + 1) + "}",
            f"it has {LONGEST_TEXT + 1} characters",
        ),
        ("config: {'metal-ipi:clusterName': 2026-01-01}", "config.metal-ipi:clusterName: it is a date"),
        ("config: {'metal-ipi:clusterName': !!binary eA==}", "it is a bytes, not a text"),
        ("config: {'metal-ipi:platform': {1: x}}", "config.metal-ipi:platform: a name in it is not a text, but int"),
        ("config: {'metal-ipi:platform': {yes: x}}", "config.metal-ipi:platform: a name in it is not a text, but bool"),
        ("config: {'metal-ipi:ssh': " + "[" * 1000 + "]" * 1000 + "}", "is not YAML"),
        ("config: {'metal-ipi:ssh': " + "[" * 50 + "]" * 50 + "}", "it is nested more than 32 levels deep"),
        ("config: {'metal-ipi:ssh': &a [*a]}", "it is nested more than 32 levels deep"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
            "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e]",
            "there are more than 100000 values",
        ),
        ("config: {'metal-ipi:x': !!python/object:os.system {}}", "is not YAML"),
    ],
    ids=range(14),
)
def test_what_no_configuration_can_hold_is_told_as_such(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(text)
    with pytest.raises(StackError) as caught:
        stackfile.read(file)
    error = caught.value
    assert told in str(error) and "stacks/Pulumi.x.yaml" in str(error)
    assert len(str(error)) < 2000


@given(st.text(max_size=200))
@profile(max_examples=100, deadline=None)
def test_any_text_is_a_stack_file_or_an_error_of_ours(text: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "Pulumi.x.yaml"
        file.write_text(text, errors="ignore")
        with suppress(StackError):
            stackfile.for_facility(stackfile.read(file))


def test_a_file_that_is_no_text_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_bytes(b"config: \xff\xfe")
    with pytest.raises(StackError, match="is not YAML"):
        stackfile.read(file)
