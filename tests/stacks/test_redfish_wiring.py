"""What a rack's settings become: installations, and the checks of what they leave."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from typing import Any
from urllib.parse import unquote

import pulumi
import pytest
import trustme

from components.boot.ignition import data_url
from stacks.problems import SettingsError
from stacks.program import main
from stacks.settings import parse
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS
from tests.stacks.rack import rack_text

_INSTALLATION = "metal-ipi:index:Installation"


def _run(runs: dict[str, str] | None = None, **changes: Any) -> Recorder:
    """`runs`: the generations of machines, by name of their Installation, that stay what they are."""
    kept = runs or {}

    def installed(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        return {"generation": kept.get(args.name, plain(args.inputs["generation"]))}

    recorder = Recorder({**ANSWERS, _INSTALLATION: installed})
    run(main, recorder, rack_text(**changes), stack="rack")
    return recorder


def _generations(recorder: Recorder) -> dict[str, str]:
    return {args.name: plain(args.inputs["generation"]) for args in recorder.of(_INSTALLATION)}


def test_a_number_that_is_raised_installs_one_machine_once_more() -> None:
    before, after = _generations(_run()), _generations(_run(platform__servers__0__installation=1))
    assert [name for name, found in after.items() if found != before[name]] == ["rack-worker-4-installation"]


def test_an_installation_is_told_the_rules() -> None:
    (first, *_) = _run(boot__install__validHours=7).of(_INSTALLATION)
    assert (first.inputs["validHours"], first.inputs["keep"], first.inputs["consent"]) == (7, False, False)
    recorder = _run(reprovision={"controlPlane": "keep", "consent": ["control-plane-1"]})
    told = {args.name: (args.inputs["keep"], args.inputs["consent"]) for args in recorder.of(_INSTALLATION)}
    assert told["rack-control-plane-0-installation"] == (True, False)
    assert told["rack-control-plane-1-installation"] == (True, True)


def test_a_machine_that_is_kept_is_checked_for_what_it_runs() -> None:
    runs = {"rack-control-plane-0-installation": "a" * 16, "rack-worker-0-installation": "b" * 16}
    for rule in ("keep", "refuse"):
        recorder = _run(
            runs,
            reprovision={"controlPlane": rule},
            controlPlane={"kernelArguments": ["nosmt"]},
            workers={"kernelArguments": ["nosmt"]},
        )
        for name in ("control-plane-0", "control-plane-1", "worker-0"):
            script = plain(recorder.one(f"rack-{name}-check").inputs["create"])
            kept = (rule, name) == ("keep", "control-plane-0")
            wanted = runs if kept else _generations(recorder)
            assert f"EXPECTED_GENERATION={wanted[f'rack-{name}-installation']}\n" in script
            assert ("EXPECTED_RELEASE=''\n" in script) == ("EXPECTED_KERNEL_ARGUMENTS=''\n" in script) == kept


_APIS: tuple[dict[str, Any], ...] = (
    {"type": "dns-round-robin"},
    {"type": "external", "address": "192.0.2.77"},
    *(
        {"type": "kube-vip", **mode, **address}
        for mode in ({}, {"mode": "arp"}, {"mode": "bgp"})
        for address in ({}, {"address": "192.0.2.200"})
    ),
)
_SERVICES: tuple[dict[str, Any], ...] = (
    {"type": "none"},
    {"type": "cloud-controller"},
    *(
        {"type": kind, "pools": [pool], "install": False}
        for kind in ("metallb-l2", "metallb-bgp")
        for pool in ({"name": "own", "addresses": ["192.0.2.240/28"]}, {"name": "elastic", "reserve": 4})
    ),
)


def test_what_settings_accept_a_rack_can_do() -> None:
    """Nobody gives out addresses or peers here: settings say so, before the platform would have to."""
    taken: list[tuple[str, str, str]] = []
    for api, services in itertools.product(_APIS, _SERVICES):
        changes = {"apiAddress": api, "serviceAddresses": services}
        if api["type"] == "external":
            changes["machineConfigServer"] = {"allowedNetworks": ["192.0.2.0/24"]}
        try:
            parse(rack_text(**changes), "rack")
        except SettingsError:
            continue
        _run(**changes)
        taken.append((api["type"], api.get("mode", ""), services["type"]))
    apis = [("dns-round-robin", ""), ("external", ""), ("kube-vip", "arp")]
    assert taken == [(*found, kind) for found in apis for kind in ("none", "metallb-l2")]


def test_an_address_that_nobody_could_reserve_is_asked_for() -> None:
    with pytest.raises(
        SettingsError, match=r"apiAddress\.mode[\s\S]*no addresses to reserve[\s\S]*set it to arp, and api"
    ):
        parse(rack_text(apiAddress={"type": "kube-vip"}), "rack")


@pytest.fixture
def authority() -> str:
    """The boot server's own."""
    return trustme.CA().cert_pem.bytes().decode()


def _text(config: dict[str, Any], path: str) -> str:
    """A file of a rendered Ignition config."""
    file = next(file for file in config["storage"]["files"] if file["path"] == path)
    head, _, data = file["contents"]["source"].partition(",")
    return base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)


def test_an_installed_machine_has_its_static_network_from_a_profile() -> None:
    recorder = _run(platform__networkBoot="static", platform__interface="eno1", boot__kernelArguments=["nosmt"])
    network = ["rd.neednet=1", "ip=192.0.2.14::192.0.2.1:255.255.255.0:rack-worker-4.rack.example.com:eno1:none"]
    network.append("nameserver=192.0.2.53")
    inputs = plain(recorder.one("rack-worker-4-installation").inputs)
    assert inputs["runs"]["kernelArguments"] == ["nosmt"]
    assert inputs["runs"]["network"] == "192.0.2.14/24 on eno1, gateway 192.0.2.1, resolvers 192.0.2.53"
    # The live system has kernel arguments, the installed one has none.
    assert " ".join(network) in inputs["script"] and set(network) <= set(inputs["live"]["arguments"])
    live = json.loads(plain(recorder.one("workers-installers").inputs["files"])["rack-worker-4.ign"])
    options = _text(live, "/etc/coreos/installer.d/10-metal-ipi.yaml")
    assert 'append-karg: ["nosmt"]\n' in options and "ip=" not in options
    assert 'copy-network: true\nnetwork-dir: "/etc/metal-ipi/network"\n' in options
    check = plain(recorder.one("rack-worker-4-check").inputs["create"])
    assert "EXPECTED_KERNEL_ARGUMENTS=nosmt\n" in check
    # The first boot's initramfs and the node itself have the same profile.
    first = _text(live, "/etc/metal-ipi/network/metal-ipi-eno1.nmconnection")
    node = json.loads(_text(live, "/etc/metal-ipi/disk.ign"))
    assert first == _text(node, "/etc/NetworkManager/system-connections/metal-ipi-eno1.nmconnection")
    assert "\naddress1=192.0.2.14/24\ngateway=192.0.2.1\n" in first


def test_a_private_authority_is_with_all_that_is_fetched_and_counts_for_nothing(authority: str) -> None:
    recorder, before = _run(artifacts__caBundle=authority), _run()
    assert _generations(recorder) == _generations(before)
    archive = plain(recorder.one("workers-initrds").inputs["files"])["rack-worker-4.img"]
    embedded = json.loads(archive[archive.index("{") : archive.rindex("}") + 1])
    trusted = {"security": {"tls": {"certificateAuthorities": [{"source": data_url(authority)}]}}}
    assert embedded["ignition"].items() >= trusted.items()
    (merged,) = embedded["ignition"]["config"]["merge"]
    assert merged["source"].startswith("https://") and merged["verification"]["hash"].startswith("sha512-")
    live = json.loads(plain(recorder.one("workers-installers").inputs["files"])["rack-worker-4.ign"])
    assert _text(live, "/etc/metal-ipi/ca.pem") == authority
    # The node itself fetches from the machine config server only, whose authority is the cluster's own.
    assert data_url(authority) not in _text(live, "/etc/metal-ipi/disk.ign")


def test_no_machine_is_told_of_an_authority_that_nobody_named() -> None:
    recorder = _run()
    archive = plain(recorder.one("workers-initrds").inputs["files"])["rack-worker-4.img"]
    assert "config.ign" in archive and "security" not in archive
    live = json.loads(plain(recorder.one("workers-installers").inputs["files"])["rack-worker-4.ign"])
    assert "/etc/metal-ipi/ca.pem" not in [file["path"] for file in live["storage"]["files"]]


def test_what_kexec_starts_is_what_ipxe_starts() -> None:
    recorder = _run()
    inputs = plain(recorder.one("rack-worker-4-installation").inputs)
    archive = plain(recorder.one("workers-initrds").inputs["files"])["rack-worker-4.img"]
    config = inputs["live"]["config"]
    assert config["sha256"] == hashlib.sha256(archive.encode()).hexdigest()
    assert f"\ninitrd --name config {config['url']}\n" in inputs["script"]
    assert " initrd=main initrd=config " in inputs["script"]
    # Both are deleted once the machine is installed.
    assert [place["files"] for place in inputs["artifacts"]] == [["rack-worker-4.ign"], ["rack-worker-4.img"]]
