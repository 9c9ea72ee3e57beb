"""A cluster in FIPS mode: keys that it takes, machines that boot in it, and settings that contradict it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from components.boot.host_keys import host_key
from components.boot.ignition import data_of
from stacks.problems import SettingsError
from stacks.program import main
from stacks.settings import parse
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS, SEED, settings
from tests.stacks.rack import rack_text

_FIPS = {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}', "fips": True}
_ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqesxf+eAriIqhUPuwKKCiWRzC4Kkc/hQ1zZk6At3G6 ann"
_ECDSA = host_key(SEED, "ann", "ecdsa").public_key


def _run(**changes: Any) -> Recorder:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings(install=_FIPS, **changes), stack="da11")
    return recorder


def _rack() -> Recorder:
    recorder = Recorder(ANSWERS)
    run(main, recorder, rack_text(install=_FIPS), stack="rack")
    return recorder


def _files(config: str) -> dict[str, str]:
    return {file["path"]: file["contents"]["source"] for file in json.loads(config)["storage"]["files"]}


def test_the_installer_is_told_and_gets_an_accepted_key_first() -> None:
    request = json.loads(plain(_run().one("install-assets-create").inputs["stdin"]))
    assert yaml.safe_load(request["installConfig"])["fips"] is True


def test_the_clusters_key_is_of_a_type_that_fips_takes() -> None:
    assert _run().one("keys").inputs["keyType"] == "ecdsa"


def test_clusters_without_fips_are_asked_for_nothing_new() -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings(), stack="da11")
    assert not recorder.one("keys").inputs
    assert "fips" not in json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))["installConfig"]
    assert "fips=1" not in json.dumps(plain(recorder.one("boot-scripts").inputs["files"]))


def test_every_live_system_boots_in_fips_mode() -> None:
    """RHCOS cannot switch a live system to it (openshift/os#1332); an installed one does it at its first boot."""
    assert " fips=1\n" in plain(_run().one("boot-scripts").inputs["files"])["node.ipxe"]
    rack = _rack()
    assert " fips=1 " in plain(rack.one("rack-bootstrap").inputs["script"])
    for installation in rack.of("metal-ipi:index:Installation"):
        assert "fips=1" in plain(installation.inputs["live"])["arguments"]
        assert plain(installation.inputs["runs"])["kernelArguments"] == []


def test_host_keys_are_of_the_same_type_wherever_they_are_pinned() -> None:
    rack = _rack()
    (installation, *_) = rack.of("metal-ipi:index:Installation")
    node, live = (str(plain(installation.inputs[key])) for key in ("hostKey", "liveHostKey"))
    assert node == host_key(SEED, "rack-control-plane-0.rack.example.com", "ecdsa").public_key
    assert live == host_key(SEED, "live.rack-control-plane-0.rack.example.com", "ecdsa").public_key
    (_, installer), *_ = sorted(plain(rack.one("control-plane-installers").inputs["files"]).items())
    pointer = data_of(_files(installer)["/etc/metal-ipi/disk.ign"])
    for config, public in ((installer, live), (pointer, node)):
        files = _files(config)
        assert "/etc/ssh/ssh_host_ed25519_key" not in files
        assert data_of(files["/etc/ssh/ssh_host_ecdsa_key.pub"]) == f"{public}\n"


def test_metal_machines_fetch_such_a_key() -> None:
    recorder = _run()
    (identity, *_) = plain(recorder.one("identities").inputs["files"]).values()
    assert set(_files(identity)) == {"/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ecdsa_key.pub"}
    (check, *_) = recorder.of("command:remote:Command")
    assert plain(plain(check.inputs["connection"])["hostKey"]).startswith("ecdsa-sha2-nistp256 ")


def test_keys_that_fips_refuses_are_refused_by_us() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(rack_text(install=_FIPS, ssh={"authorizedKeys": [_ECDSA, _ED25519]}), "s1")
    (problem,) = caught.value.problems
    assert (problem.path, problem.value) == ("metal-ipi:ssh.authorizedKeys[1]", "ssh-ed25519")
    assert "with install.fips" in problem.why and "ECDSA" in problem.remedy


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"boot__kernelArguments": ["quiet", "fips=1"]}, "boot.kernelArguments[1]"),
        ({"controlPlane": {"kernelArguments": ["fips"]}}, "controlPlane.kernelArguments[0]"),
        ({"workers": {"kernelArguments": ["fips=0"]}}, "workers.kernelArguments[0]"),
        ({"platform__servers__0__kernelArguments": ["fips=1"]}, "platform.servers[0].kernelArguments[0]"),
    ],
)
def test_fips_is_no_kernel_argument_to_set(changes: dict[str, Any], path: str) -> None:
    """An installed system in FIPS mode needs `boot=` beside it; RHCOS sets both (openshift/os, rhcos-fips.sh)."""
    with pytest.raises(SettingsError) as caught:
        parse(rack_text(**changes), "s1")
    (problem,) = caught.value.problems
    assert (problem.path, problem.remedy) == (f"metal-ipi:{path}", "remove it, and set install.fips")
