"""Metal's devices: installed to disk by the script they were ordered with, then by kexec or a reinstallation."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from tests.end_to_end.cluster import DOMAIN, names
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_BOOT = {"install": {"image": "stream", "device": {"smallest": True}}}
_CHECKS = {"ignition", "platform-karg", "afterburn-public-ipv4", "afterburn-private-ipv4", "afterburn-hostname",
           "installation", "root-on-disk", "hostname", "os-version"}  # fmt: skip
_NODES = list(names())
_WORKERS = _NODES[-2:]
_KARG = "lab.rehearsal=1"
_BOOTED = re.compile(r"(?m)^(iPXE) initialising|^Booting from Hard Disk")


@pytest.fixture(scope="module")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab stack is installed to disk, shared by this module's tests."""
    for project in copies(tmp_path_factory.mktemp("metal")):
        project.configure(boot=_BOOT)
        project.make("up")
        yield project


@pytest.fixture(scope="module")
def user(kubernetes: None, facility: Project, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Of the facility's cluster."""
    return User(facility, tmp_path_factory.mktemp("user"))


def _devices(facility: Project) -> dict[str, dict[str, Any]]:
    """As the API shows them, by host name."""
    return {device["hostname"]: device for device in facility.holdings()["devices"]}


def _act(facility: Project, device: dict[str, Any], action: str) -> None:
    facility.inside("call", "POST", f"/devices/{device['id']}/actions", json.dumps({"type": action}))


def _console(facility: Project, device: dict[str, Any]) -> str:
    return (facility.layout.state / "machines" / device["id"] / "console.log").read_text(errors="replace")


def _boots(facility: Project) -> dict[str, list[str]]:
    """What each machine has booted since it was ordered: its firmware says so."""
    return {
        hostname: ["network" if found[1] else "disk" for found in _BOOTED.finditer(_console(facility, device))]
        for hostname, device in _devices(facility).items()
    }


def _since(facility: Project, before: dict[str, list[str]]) -> dict[str, list[str]]:
    """What the machines that were booted since have booted."""
    now = _boots(facility)
    return {hostname: now[hostname][len(boots) :] for hostname, boots in before.items() if now[hostname] != boots}


def _read(facility: Project) -> dict[str, dict[str, str]]:
    """What each node's checks observed, all of which passed."""
    nodes = {node["name"].removesuffix(f".{DOMAIN}"): node["checks"] for node in facility.output()["nodes"]}
    assert list(nodes) == _NODES
    for checks in nodes.values():
        assert {check["name"] for check in checks} >= _CHECKS
        assert {check["status"] for check in checks} == {"passed"}, checks
    return {name: {check["name"]: check["observed"] for check in checks} for name, checks in nodes.items()}


def _ways(facility: Project) -> dict[str, str]:
    """How each machine got into its installer the last time."""
    return {
        resource["inputs"]["hostname"]: resource["outputs"]["via"]
        for resource in facility.deployment()["resources"]
        if resource["type"] == "metal-ipi:index:Installation"
    }


def test_devices_are_installed_to_their_disks(facility: Project) -> None:
    read, devices = _read(facility), _devices(facility)
    assert {(device["state"], device["always_pxe"]) for device in devices.values()} == {("active", False)}
    for name, observed in read.items():
        addresses = {address["public"]: address["address"] for address in devices[name]["ip_addresses"]}
        found = [observed[f"afterburn-{key}"] for key in ("public-ipv4", "private-ipv4", "hostname")]
        assert found == [addresses[True], addresses[False], name]
        assert observed["platform-karg"] == "packet"
    assert _ways(facility) == dict.fromkeys(_NODES, "order")
    assert _boots(facility) == {name: ["network", "disk"] for name in _NODES}


def test_devices_that_the_api_reboots_come_back_from_disk(facility: Project) -> None:
    before, devices = _boots(facility), _devices(facility)
    logins = {name: _console(facility, device).count("login:") for name, device in devices.items()}
    for device in devices.values():
        _act(facility, device, "reboot")
    for name, device in devices.items():
        await_(lambda n=name, d=device: _console(facility, d).count("login:") > logins[n], f"{name} is up again", 60)
    assert _since(facility, before) == {name: ["disk"] for name in _NODES}
    # Asked anew, over SSH, each node says that it is what the state says.
    facility.assert_unchanged("up", "refresh")


def test_workers_are_installed_again_by_kexec_and_one_that_is_off_by_a_reinstallation(facility: Project) -> None:
    read, before, devices = _read(facility), _boots(facility), _devices(facility)
    by_kexec, off = _WORKERS
    _act(facility, devices[off], "power_off")
    await_(lambda: _devices(facility)[off]["state"] == "inactive", f"{off} is off", 60)
    facility.configure(boot=_BOOT, workers={"kernelArguments": [_KARG]})

    facility.make("up")

    again = _read(facility)
    assert {name for name in _NODES if again[name]["installation"] != read[name]["installation"]} == set(_WORKERS)
    assert {name for name in _NODES if f"karg {_KARG}" in again[name]} == set(_WORKERS)
    assert {name: _ways(facility)[name] for name in _WORKERS} == {by_kexec: "kexec", off: "reinstall"}
    # No firmware sees a kexec.
    assert _since(facility, before) == {by_kexec: ["disk"], off: ["network", "disk"]}
    after = _devices(facility)
    assert facility.devices() == {name: device["id"] for name, device in devices.items()}
    assert {device["state"] for device in after.values()} == {"active"}
    facility.assert_unchanged("refresh", "up")


def test_a_device_that_is_ordered_anew_is_installed_as_the_first_was(
    facility: Project, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, before, devices = _read(facility), _boots(facility), _devices(facility)
    name, *_ = _WORKERS
    node = f"/api/v1/nodes/{name}.{DOMAIN}"
    former = user("get", node)["metadata"]["uid"]
    monkeypatch.setenv("REPLACE", name)
    facility.make("up")
    # The former machine's node was drained and removed before: ovn-kubernetes would refuse the new one under it.
    assert user("get", node)["metadata"]["uid"] != former
    after = _devices(facility)
    assert {each for each in _NODES if after[each]["id"] != devices[each]["id"]} == {name}
    assert _boots(facility) == {**before, name: ["network", "disk"]}
    assert _read(facility)[name]["installation"] == read[name]["installation"] and _ways(facility)[name] == "order"
    assert f"{name}.ign" not in facility.uploaded(), "what installs it was withdrawn again"


def test_a_worker_that_is_taken_away_leaves_no_node(facility: Project, user: User) -> None:
    kept, gone = _WORKERS
    facility.configure(boot=_BOOT, workers={"kernelArguments": [_KARG], "count": 1})

    done = facility.make("up")

    assert f"{gone}-installation (Installation): deleted" in done.text, done.text
    assert sorted(_devices(facility)) == sorted(set(_NODES) - {gone})
    names = {name.removesuffix(f".{DOMAIN}") for name in user("nodes")}
    assert names == set(_NODES) - {gone} and kept in names
    facility.assert_unchanged("up")


def test_down_leaves_nothing(facility: Project) -> None:
    facility.assert_down()
