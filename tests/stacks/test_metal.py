"""What is ordered from Equinix Metal, by the settings: reservations, the spot market, VLANs, subnets, an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import golden
from tests.mocks import Recorder
from tests.stacks.answers import declared, node_files, stack_file

_DEVICE = "equinix-metal:index/device:Device"
_REQUEST = "equinix-metal:index/spotMarketRequest:SpotMarketRequest"
_PORT = "equinix-metal:index/port:Port"
_IDS = [f"7d2c4f6e-000{number}-4c35-9d5e-5a0f3c1b2a00" for number in range(5)]


def _run(stack: str = "lab", platform: dict[str, Any] | None = None, **changes: Any) -> Recorder:
    return declared(stack, platform={**stack_file(stack)["platform"], **(platform or {})}, **changes)


@pytest.mark.parametrize("stack", ["spot", "hybrid", "reserved"])
def test_urns(stack: str) -> None:
    recorder = declared(stack, preview=True)
    machines = ("machines:", "equinix-metal:", "SpotMachine")
    urns = sorted(recorder.urn(each.name) for each in recorder.resources)
    golden.check(f"urns-{stack}.txt", "".join(f"{urn}\n" for urn in urns if any(part in urn for part in machines)))


def test_plain_machines_are_ordered_with_nothing_new() -> None:
    device = _run().inputs("lab-worker-0-device")
    assert set(device) == {
        "alwaysPxe", "billingCycle", "hostname", "ipxeScriptUrl", "metro", "operatingSystem", "plan", "projectId",
        "projectSshKeyIds", "tags", "userData",
    }  # fmt: skip


def test_machines_are_ordered_on_reserved_servers() -> None:
    reservations = {"bootstrap": _IDS[0], "controlPlane": _IDS[1:4], "worker": "next-available"}
    recorder = _run(platform={"reservations": reservations, "workerPlan": "m3.large.x86"})
    assert recorder.inputs("lab-bootstrap")["hardwareReservationId"] == _IDS[0]
    for number in range(3):
        device = recorder.inputs(f"lab-control-plane-{number}-device")
        assert device["hardwareReservationId"] == _IDS[1 + number]
        assert device["waitForReservationDeprovision"] is True, "a machine that replaces it needs its server"
    assert recorder.inputs("lab-worker-1-device")["hardwareReservationId"] == "next-available"


def test_workers_from_the_spot_market_have_a_request_each() -> None:
    recorder = _run("spot")
    assert [device.name for device in recorder.of(_DEVICE)] == [f"spot-control-plane-{n}-device" for n in range(3)]
    assert [request.name for request in recorder.of(_REQUEST)] == [f"spot-worker-{n}-request" for n in range(2)]
    request = recorder.inputs("spot-worker-1-request")
    assert (request["devicesMin"], request["devicesMax"], request["maxBidPrice"]) == (1, 1, 0.6)
    assert (request["metro"], request["waitForDevices"]) == ("lb", False)
    parameters = request["instanceParameters"]
    assert (parameters["hostname"], parameters["plan"]) == ("spot-worker-1", "c3.medium.x86")
    assert (parameters["operatingSystem"], parameters["alwaysPxe"]) == ("custom_ipxe", True)
    assert "metal-ipi:name=spot-worker-1" in parameters["tags"] and "metal-ipi:run=keys-id" in parameters["tags"]
    assert json.loads(parameters["userdata"])["ignition"]["config"]["merge"]
    machine = recorder.inputs("spot-worker-1-machine")
    assert (machine["requestId"], machine["machineIds"]) == ("spot-worker-1-request-id", ["spot-worker-1-of-request"])
    # What checks the node knows it by the machine that the request has got.
    assert "spot-worker-1-machine" in recorder.depends_on("worker-checks-reachable")
    kept = set(recorder.requests["spot-worker-0-request"].ignoreChanges)
    parameters = {f"instanceParameters.{name}" for name in ("plan", "projectSshKeys", "ipxeScriptUrl", "customdata")}
    assert kept == {*parameters, "maxBidPrice", "metro", "facilities", "projectId"}, "see test_stage.py"


def _addresses(recorder: Recorder, name: str) -> dict[str, str]:
    found = node_files(recorder.inputs(f"hybrid-{name}-device")["userData"])
    lines = {path: text for path, text in found.items() if "/vlan-" in path}
    return {
        path.rpartition("/vlan-")[2].removesuffix(".nmconnection"): next(
            line.partition("=")[2] for line in text.splitlines() if line.startswith("address1=")
        )
        for path, text in lines.items()
    }


def test_bonds_are_in_the_vlans_of_their_role() -> None:
    recorder = _run("hybrid")
    vlan = recorder.inputs("platform-vlan-storage")
    assert (vlan["metro"], vlan["vxlan"]) == ("lb", 1100)
    assert vlan["description"] == "metal-ipi:hybrid:hybrid.facility.test:storage run=keys-id volumes"
    assert recorder.inputs("platform-ssh-key")["name"] == "metal-ipi:hybrid:hybrid.facility.test run=keys-id"
    assert recorder.inputs("preflight")["run"] == "keys-id"
    gateway = recorder.inputs("platform-gateway-storage")
    assert (gateway["vlanId"], gateway["privateIpv4SubnetSize"]) == ("platform-vlan-storage-id", 16)
    assert len(recorder.of(_PORT)) == 5
    master, worker = (recorder.inputs(f"hybrid-{name}-0-bond") for name in ("control-plane", "worker"))
    assert master["vlanIds"] == ["platform-vlan-storage-id"]
    assert set(worker["vlanIds"]) == {"platform-vlan-storage-id", "platform-vlan-backup-id"}
    assert (worker["portId"], worker["bonded"], worker["layer2"]) == ("hybrid-worker-0-device-bond0", True, False)
    assert worker["resetOnDelete"] is True
    assert recorder.requests["hybrid-worker-0-bond"].deletedWith.endswith("::hybrid-worker-0-device")
    assert "platform-vlan-storage" in recorder.depends_on("hybrid-worker-0-device"), "so VLANs are deleted last"
    assert recorder.of("equinix-metal:index/bgpSession:BgpSession") == []


def test_machines_know_their_addresses_in_vlans() -> None:
    recorder = _run("hybrid")
    assert _addresses(recorder, "control-plane-2") == {"storage": "10.66.0.4/28"}
    assert _addresses(recorder, "worker-1") == {"storage": "10.66.0.7/28", "backup": "10.99.0.7/24"}
    assert "bond0" not in recorder.inputs("hybrid-bootstrap")["userData"]


def test_five_control_plane_machines_leave_workers_their_addresses_in_vlans() -> None:
    recorder = declared("hybrid", controlPlane={"count": 5})
    assert _addresses(recorder, "control-plane-3") == {"storage": "10.66.0.5/28"}
    assert _addresses(recorder, "control-plane-4") == {"storage": "10.66.0.14/28"}
    assert _addresses(recorder, "worker-0")["storage"] == "10.66.0.6/28"


def test_a_vlan_without_subnet_changes_nothing_on_the_machines() -> None:
    recorder = _run(platform={"networks": [{"name": "bare", "roles": ["worker"]}]})
    assert "vxlan" not in recorder.inputs("platform-vlan-bare"), "Metal chooses"
    assert recorder.inputs("lab-worker-0-bond")["vlanIds"] == ["platform-vlan-bare-id"]
    assert "bond0" not in recorder.inputs("lab-worker-0-device")["userData"]
    assert [port.name for port in recorder.of(_PORT)] == ["lab-worker-0-bond", "lab-worker-1-bond"]


def test_spot_workers_bonds_are_in_vlans_as_well_and_never_reset() -> None:
    recorder = _run("spot", platform={"networks": [{"name": "bare", "roles": ["worker"]}]})
    port = recorder.inputs("spot-worker-0-bond")
    assert (port["portId"], port["resetOnDelete"]) == ("spot-worker-0-machine-bond0", False)


def test_machines_get_subnets_of_their_own() -> None:
    recorder = _run(platform={"machineSubnets": {"bootstrap": 30, "worker": 29}})
    assert recorder.inputs("lab-bootstrap")["publicSubnet"] == 30
    assert recorder.inputs("lab-worker-0-device")["ipAddresses"] == [
        {"type": "public_ipv4", "cidr": 29},
        {"type": "private_ipv4"},
    ]
    assert "ipAddresses" not in recorder.inputs("lab-control-plane-0-device")


def test_all_machines_of_a_rehearsal_end_at_the_same_time() -> None:
    recorder = _run(platform={"lifetimeHours": 12})
    assert recorder.inputs("platform-lifetime") == {"hours": 12}
    machines = ["lab-bootstrap", *(device.name for device in recorder.of(_DEVICE))]
    assert {recorder.inputs(name)["terminationTime"] for name in machines} == {"2026-01-01T12:00:00Z"}
    assert {"platform-lifetime"} <= recorder.depends_on("lab-worker-0-device")
    assert "preflight" in recorder.depends_on("platform-lifetime"), "what was refused has begun no time"
    assert recorder.inputs("preflight")["lifetimeHours"] == 12


def test_an_installed_spot_worker_does_not_loop_into_its_installer() -> None:
    boot = {**stack_file("spot")["boot"], "install": {"image": "live", "device": {"smallest": True}}}
    recorder = _run("spot", boot=boot)
    parameters = recorder.inputs("spot-worker-0-request")["instanceParameters"]
    assert parameters["alwaysPxe"] is False and parameters["ipxeScriptUrl"].endswith("spot-worker-0.ipxe")
    assert recorder.inputs("spot-bootstrap")["alwaysPxe"] is True, "it runs from memory"
    assert recorder.inputs("spot-worker-0-installation")["machineId"] == "spot-worker-0-machine-of-request"


def test_custom_data_and_tags_are_on_every_machine() -> None:
    recorder = _run(platform={"customData": {"team": "storage", "a": [1]}, "tags": ["team:storage"]})
    for name in ("lab-bootstrap", "lab-control-plane-0-device", "lab-worker-1-device"):
        inputs = recorder.inputs(name)
        assert json.loads(inputs["customData"]) == {"team": "storage", "a": [1]}
        assert inputs["tags"][-2:] == ["metal-ipi:run=keys-id", "team:storage"]


@pytest.mark.parametrize(
    ("architecture", "plans"),
    [
        ("x86_64", ["c3.small.x86", "c3.medium.x86", "c3.medium.x86"]),
        ("aarch64", ["c3.large.arm64", "c3.large.arm64", "c3.large.arm64"]),
    ],
)
def test_plans_and_consoles_follow_the_architecture(architecture: str, plans: list[str]) -> None:
    boot = {"architecture": architecture, "streamFile": "stacks/rhcos-4.21.json"}
    recorder = _run(boot=boot)
    names = ("lab-bootstrap", "lab-control-plane-0-device", "lab-worker-0-device")
    assert [recorder.inputs(name)["plan"] for name in names] == plans
    console = {"x86_64": "ttyS1,115200n8", "aarch64": "ttyAMA0,115200"}[architecture]
    script = recorder.inputs("boot-scripts")["files"]["node.ipxe"]
    assert f"console={console}" in script and f"live-kernel.{architecture}" in script.replace("-kernel-", "-kernel.")
