"""A cluster in FIPS mode: keys that it takes, machines that boot in it, and settings that contradict it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
import yaml

from metal_ipi.components.boot.host_keys import host_key
from tests.mocks import Recorder, plain
from tests.stacks.answers import SEED, checked, declared, node_files
from tests.stacks.rack import rack_declared, rack_problems

_FIPS = {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}', "fips": True}
_ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqesxf+eAriIqhUPuwKKCiWRzC4Kkc/hQ1zZk6At3G6 ann"
_ECDSA = host_key(SEED, "ann", "ecdsa").public_key


@cache
def _metal() -> Recorder:
    return declared(install=_FIPS)


@cache
def _rack() -> Recorder:
    return rack_declared(install=_FIPS)


def _install_config(recorder: Recorder) -> dict[str, Any]:
    return yaml.safe_load(json.loads(recorder.inputs("install-assets-create")["stdin"])["installConfig"])


def test_the_installer_is_told_and_the_clusters_key_is_of_a_type_that_fips_takes() -> None:
    assert _install_config(_metal())["fips"] is True and _metal().one("keys").inputs["keyType"] == "ecdsa"
    without = declared()
    assert "fips" not in _install_config(without) and not without.one("keys").inputs
    assert "fips=1" not in without.inputs("boot-scripts")["files"]["node.ipxe"]


def test_every_live_system_boots_in_fips_mode() -> None:
    """RHCOS cannot switch a live system to it (openshift/os#1332); an installed one does it at its first boot."""
    assert " fips=1\n" in _metal().inputs("boot-scripts")["files"]["node.ipxe"]
    assert " fips=1 " in _rack().inputs("rack-bootstrap")["script"]
    for installation in _rack().of("metal-ipi:index:Installation"):
        assert "fips=1" in plain(installation.inputs["live"])["arguments"]
        assert plain(installation.inputs["runs"])["kernelArguments"] == []


def test_host_keys_are_of_the_same_type_wherever_they_are_pinned() -> None:
    inputs = _rack().inputs("rack-control-plane-0-installation")
    node, live = inputs["hostKey"], inputs["liveHostKey"]
    assert node == host_key(SEED, "rack-control-plane-0.rack.example.com", "ecdsa").public_key
    assert live == host_key(SEED, "live.rack-control-plane-0.rack.example.com", "ecdsa").public_key
    installer = node_files(_rack().inputs("control-plane-installers")["files"]["rack-control-plane-0.ign"])
    for files, public in ((installer, live), (node_files(installer["/etc/metal-ipi/disk.ign"]), node)):
        assert "/etc/ssh/ssh_host_ed25519_key" not in files
        assert files["/etc/ssh/ssh_host_ecdsa_key.pub"] == f"{public}\n"
    (identity, *_) = _metal().inputs("identities")["files"].values()
    assert set(node_files(identity)) == {"/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ecdsa_key.pub"}
    assert checked(_metal(), "da11-worker-0")["hostKey"].startswith("ecdsa-sha2-nistp256 ")


def test_keys_that_fips_refuses_are_refused_by_us() -> None:
    (problem,) = rack_problems(install=_FIPS, ssh={"authorizedKeys": [_ECDSA, _ED25519]})
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
    (problem,) = rack_problems(**changes)
    assert (problem.path, problem.remedy) == (f"metal-ipi:{path}", "remove it, and set install.fips")
