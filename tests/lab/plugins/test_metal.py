"""Each resource type of the stand-in for `equinix-metal` through its life, on the emulated API."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import time
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi_equinix_metal as sdk
import pytest
from pulumi.provider.experimental import provider as api

from lab.plugins.base import InitFailed, NotInTheLab, PluginError
from lab.plugins.equinix_metal.table import TYPES
from lab.plugins.values import UNKNOWN, plain, plain_map, wrap_map
from tests.lab.plugins.emulated import Emulation
from tests.lab.plugins.harness import Heard, Json, eventually
from tests.lab.plugins.metal_types import (
    BLOCK,
    DEVICE,
    GIVEN,
    ORGANIZATION,
    PROJECT,
    SPOT,
    VLAN,
    bond_of,
    driver,
    given,
    made,
    without,
)

pytestmark = pytest.mark.usefixtures("closed")

_types: Any = importlib.import_module("pulumi._types")
PLACE: dict[str, Any] = {"metro": "lb"}
TOLD: dict[str, Json] = {
    "BgpSession": {"addressFamily": "ipv4", "defaultRoute": False},
    "Device": {
        **without(DEVICE, "metro"),
        **PLACE,
        "facilities": ["lab1"],
        "deployedFacility": "lab1",
        "state": "active",
        "networkType": "layer3",
        "billingCycle": "hourly",
        "terminationTime": "",
        "forceDetachVolumes": False,
    },
    "Gateway": {"privateIpv4SubnetSize": 16},
    "Port": {"bonded": True, "layer2": False, "name": "bond0", "type": "NetworkBondPort", "disbondSupported": True},
    "Project": {"organizationId": ORGANIZATION, "backendTransfer": False},
    "ProjectSshKey": {**GIVEN["ProjectSshKey"], "ownerId": PROJECT},
    "ReservedIpBlock": {**BLOCK, **PLACE, "tags": ["a", "b"], "type": "public_ipv4", "public": True, "cidr": 30},
    "SpotMarketRequest": {**without(SPOT, "instanceParameters"), **PLACE},
    "Vlan": {**VLAN, **PLACE, "facility": ""},
}
"""What the state has of each, as officially."""
CHANGES: dict[str, Json] = {
    "Device": {"hostname": "other", "tags": ["c"], "alwaysPxe": True, "description": "d"},
    "Project": {"name": "new", "bgpConfig": {"deploymentType": "local", "asn": 65000, "md5": "Swordfish4bgp"}},
    "ProjectSshKey": {"name": "new"},
}
"""What can be changed in place."""


def members(state: Json, names: Any) -> Json:
    return {name: state[name] for name in names}


def check_types(name: str, state: Json) -> None:
    """Values are what the SDK expects."""
    shown = {key: value for key, value in state.items() if key not in ("id", "__meta")}
    assert _misfits(shown, _types.resource_types(getattr(sdk, name)), name) == []


def _misfits(values: Mapping[str, Any], types: Mapping[str, Any], path: str) -> list[str]:
    unknown = [f"{path}.{name} is made up" for name in values.keys() - types.keys()]
    known = values.keys() & types.keys()
    return unknown + [it for name in known for it in _misfit(values[name], types[name], f"{path}.{name}")]


def _misfit(value: Any, wanted: Any, path: str) -> list[str]:
    kind, origin = wanted, typing.get_origin(wanted)
    if value is None or kind is Any:
        return []
    if origin is typing.Union:
        return _misfit(value, typing.get_args(kind)[0], path)
    if origin is not None:
        inner = typing.get_args(kind)[0]
        fits = isinstance(value, Sequence) and not isinstance(value, str)
        return [it for each in value for it in _misfit(each, inner, f"{path}[]")] if fits else [f"{path} is not a list"]
    if kind in (str, bool, int, float):
        whole = isinstance(value, float) and (kind is float or (kind is int and value.is_integer()))
        return [] if type(value) is kind or whole else [f"{path} is {value!r}, not {kind}"]
    return _misfits(value, _types.output_type_types(kind), path)


@pytest.mark.parametrize("kind", sorted(TYPES))
async def test_a_resource_lives_its_life(metal: Emulation, kind: str) -> None:
    before = metal.left()
    wanted = await given(kind)
    resource, identifier, kept, inputs = await made(kind, wanted)
    assert members(kept, TOLD[kind]) == TOLD[kind]
    check_types(kind, kept)
    _, seen, found = await resource.read(identifier, kept, inputs)
    check_types(kind, seen)
    assert await resource.diff(seen, found) == {}
    assert await resource.diff(seen, inputs) == {}
    _, imported, its_inputs = await resource.read(identifier, {}, {})
    assert imported["id"] == identifier
    required = {name for name, it in TYPES[kind].inputs.items() if it.required} - {"instanceParameters"}
    assert required <= its_inputs.keys() and its_inputs["__defaults"] == []
    change = await resource.inputs({**wanted, **CHANGES.get(kind, {})})
    preview = await resource.update(identifier, kept, change, preview=True)
    assert members(preview, CHANGES.get(kind, {})) == members(change, CHANGES.get(kind, {}))
    after = await resource.update(identifier, kept, change)
    assert after["id"] == identifier and await resource.diff(after, change) == {}
    assert plain_map((await resource.create(inputs, preview=True))[1]).keys() <= TYPES[kind].properties.keys()
    await resource.delete(identifier, after)
    if kind == "Port":
        assert (await resource.read(identifier, kept, inputs))[1]["vlanIds"] == []
        return
    await resource.delete(identifier, after)
    deadline = time.monotonic() + 10
    while kind == "Gateway" and (await resource.read(identifier, kept, inputs))[0]:
        assert time.monotonic() < deadline  # Metal takes its time to delete one
        await asyncio.sleep(0.05)
    assert await resource.read(identifier, kept, inputs) == ("", {}, {})
    with pytest.raises(PluginError, match=r"no longer exists: refresh|404"):
        await resource.update(identifier, kept, change)
    if kind not in ("BgpSession", "Gateway"):
        assert metal.left() == before


async def test_a_device_is_waited_for_told_about_and_secret(metal: Emulation) -> None:
    log = Heard()
    device = await driver(log=log)
    inputs = await device.inputs({**DEVICE, "customData": '{"a": 1}', "terminationTime": "2099-09-03T16:32:00Z"})
    identifier, state = await device.create(inputs, timeout=600)
    assert json.loads(str(plain(state["__meta"])))["e2bfb730-ecaa-11e6-8f88-34363bc7c4c0"]["create"] == 600 * 10**9
    assert {name for name, value in state.items() if value.is_secret} == {"rootPassword", "userData", "customData"}
    assert all(line.startswith("lab-worker-0: ") for line in log.lines) and log.lines
    asked = metal.ask("GET", f"/devices/{identifier}")
    assert (asked["ipxe_script_url"], asked["userdata"], asked["customdata"]) == ("http://boot/a", "{}", {"a": 1})
    fewer = without(inputs, "tags", "hostname", "terminationTime")
    kept = await device.update(identifier, plain_map(state), fewer)
    assert (kept["tags"], kept["hostname"]) == ([], "lab-worker-0")
    # What somebody else changed shows, also in the inputs.
    metal.ask("PUT", f"/devices/{identifier}", {"tags": ["drifted"]})
    _, seen, found = await device.read(identifier, kept, inputs)
    assert (found["tags"], found["metro"]) == (["drifted"], "LB")
    assert await device.diff(seen, inputs) == {"tags[0]": "UPDATE", "tags[1]": "ADD", "terminationTime": "ADD"}


async def test_facilities_are_a_preference(metal: Emulation) -> None:
    wanted = {**without(DEVICE, "metro"), "facilities": ["lab2", "lab1"]}
    device, identifier, state, inputs = await made("Device", wanted)
    [chosen] = state["facilities"]
    assert chosen in ("lab1", "lab2")
    assert (await device.read(identifier, state, inputs))[2]["facilities"] == [chosen]
    block = {"projectId": PROJECT, "quantity": 1, "facility": "lab1"}
    _, _, state, _ = await made("ReservedIpBlock", block)
    assert (state["facility"], state["metro"], state["tags"]) == ("lab1", "lb", [])


async def test_a_device_that_fails_is_kept_and_told_about(metal: Emulation) -> None:
    metal.machines.refuse = "no power"
    device = await driver()
    with pytest.raises(InitFailed, match=r"device lab-worker-0 \(.*\) is failed, not active; latest .*no power"):
        await device.create(DEVICE)
    with pytest.raises(InitFailed) as failure:
        await device.create({**DEVICE, "hostname": "second"})
    state = plain_map(failure.value.properties)
    assert failure.value.resource_id in metal.ids(f"/projects/{PROJECT}/devices")
    assert await device.diff(state, {**DEVICE, "hostname": "second"}) == {"state": "UPDATE_REPLACE"}
    assert failure.value.properties["userData"].is_secret


@pytest.mark.parametrize("how", ["late", "cancelled", "gone", "unreachable"])
async def test_a_device_that_does_not_become_active(
    metal: Emulation, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Only one that disappears is nobody's; any other is kept, and waited for by the next update."""
    metal.fault("never_boots", count=None)
    device, started = await driver(), time.monotonic()
    task = asyncio.ensure_future(device.create(DEVICE, timeout=0.3 if how == "late" else 60))
    if how == "late":
        await asyncio.wait([task])
    else:
        await eventually(lambda: metal.count("GET", "/devices/{id}") > 2)
    identifiers = metal.ids(f"/projects/{PROJECT}/devices")
    if how == "cancelled":
        task.cancel()
    elif how == "gone":
        metal.ask("DELETE", f"/devices/{identifiers[0]}")
    elif how == "unreachable":
        monkeypatch.setattr("lab.plugins.equinix_metal.client.RETRIES", 2)
        metal.fault("status", method="GET", path="/devices", count=None)
    message = {
        "late": r"lab-worker-0 \(.*\) is still provisioning after (\d+) s",
        "cancelled": "cancelled while waiting for device lab-worker-0",
        "gone": "disappeared|is deprovisioning",
        "unreachable": "after 3 attempts",
    }[how]
    with pytest.raises(PluginError, match=message) as failure:
        await task
    if how == "late":
        told = re.search(message, str(failure.value))
        assert told is not None and int(told[1]) <= round(time.monotonic() - started)
    if how == "gone":
        return
    assert isinstance(failure.value, InitFailed)
    assert [failure.value.resource_id] == identifiers
    metal.ask("DELETE", "/lab/faults")
    state = plain_map(failure.value.properties)
    assert await device.diff(state, DEVICE) == {}
    assert (await device.update(failure.value.resource_id, state, DEVICE))["state"] == "active"
    assert metal.count("POST", "/devices") == 1


async def test_release_waits_for_what_is_refused_for_the_time_being(metal: Emulation) -> None:
    device, identifier, state, _ = await made("Device")
    metal.fault("status", method="DELETE", status=422, count=2)
    await device.delete(identifier, state)
    assert metal.ids(f"/projects/{PROJECT}/devices") == []
    device, identifier, state, _ = await made("Device")
    metal.fault("status", method="DELETE", status=422, count=None)
    with pytest.raises(PluginError, match=r"cannot be released: .*422"):
        await device.delete(identifier, state, timeout=0.05)


async def test_reserved_hardware_is_waited_for_until_it_can_be_ordered_again(metal: Emulation) -> None:
    reserved = {"hardwareReservationId": "next-available", "waitForReservationDeprovision": True}
    device, identifier, state, inputs = await made("Device", {**DEVICE, **reserved})
    assert state["hardwareReservationId"] == "next-available"
    [hardware] = metal.ids(f"/projects/{PROJECT}/hardware-reservations")
    assert state["deployedHardwareReservationId"] == hardware
    assert await device.diff(state, {**inputs, "hardwareReservationId": hardware}) == {}
    await device.delete(identifier, state)
    assert metal.ask("GET", f"/hardware-reservations/{hardware}")["provisionable"]
    assert metal.count("GET", "/hardware-reservations/{id}") > 1


async def test_many_are_waited_for_with_one_request_at_a_time(
    metal: Emulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order each, and looks that all share: what 30 devices take grows with the time, not with their number."""
    monkeypatch.setattr("lab.plugins.equinix_metal.device.MANY_EVERY_SECONDS", 0.3)
    device = await driver()

    async def live(number: int) -> None:
        inputs = {**DEVICE, "hostname": f"lab-worker-{number}"}
        identifier, state = await device.create(inputs, timeout=20)
        assert (plain(state["state"]), plain(state["hostname"])) == ("active", f"lab-worker-{number}")
        await device.delete(identifier, plain_map(state), timeout=20)

    await asyncio.gather(*(live(number) for number in range(30)))
    assert metal.ids(f"/projects/{PROJECT}/devices") == []
    looks = metal.count("GET", f"/projects/{PROJECT}/devices") + metal.count("GET", "/projects/{id}/devices")
    assert 1 <= looks <= 30
    assert metal.count("GET", "/devices/{id}") <= 60


async def test_a_projects_bgp_is_kept_secret_and_cannot_be_removed(metal: Emulation) -> None:
    project = await driver("Project")
    bgp = {"deploymentType": "local", "asn": 65000, "md5": "Swordfish4bgp"}
    inputs = await project.inputs({"bgpConfig": bgp})
    identifier, state = await project.create(inputs)
    inner: Any = state["bgpConfig"].value
    assert inner["md5"].is_secret and plain(inner["md5"]) == "Swordfish4bgp"
    with pytest.raises(PluginError, match="bgpConfig cannot be removed"):
        await project.update(identifier, plain_map(state), {"name": inputs["name"]})


@pytest.mark.parametrize("path", ["/bgp-configs", "/bgp-config$"])
async def test_a_project_that_is_not_finished_is_kept(
    metal: Emulation, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("lab.plugins.equinix_metal.client.RETRIES", 1)
    metal.fault("status", path=path, count=None)
    project = await driver("Project")
    inputs = await project.inputs(GIVEN["Project"])
    with pytest.raises(InitFailed, match="after 2 attempts") as failure:
        await project.create(inputs)
    metal.ask("DELETE", "/lab/faults")
    kept = plain_map(failure.value.properties)
    assert (await project.update(failure.value.resource_id, kept, inputs))["bgpConfig"]["asn"] == 65000


async def test_a_network_that_is_in_use_is_freed_and_removed(metal: Emulation) -> None:
    _, _, port, _ = await made("Port")
    [network] = port["vlanIds"]
    vlan = await driver("Vlan")
    await vlan.delete(network, {})
    assert network not in metal.ids(f"/projects/{PROJECT}/virtual-networks")
    _, identifier, _, _ = await made("Vlan")
    metal.fault("status", method="DELETE", status=422, count=None)
    with pytest.raises(PluginError, match=r"virtual network .* cannot be removed: .*422"):
        await vlan.delete(identifier, {}, timeout=0.05)


async def test_a_bond_gets_and_loses_networks(metal: Emulation) -> None:
    one, two, three = [(await made("Vlan", {**VLAN, "vxlan": vxlan}))[1] for vxlan in (1001, 1002, 1003)]
    _, _, device, _ = await made("Device")
    wanted: Json = {"portId": bond_of(device), "bonded": True, "vlanIds": [one, two]}
    port, identifier, kept, inputs = await made("Port", wanted)
    assert metal.count("POST", "/batches") == 1
    kept = await port.update(identifier, kept, {**inputs, "vlanIds": [two, three]})
    assert sorted(kept["vxlanIds"]) == [1002, 1003]
    assert metal.count("POST", "/batches") == 3
    kept = await port.update(identifier, kept, without(inputs, "vlanIds"))
    assert sorted(kept["vxlanIds"]) == [1002, 1003]
    await port.delete(identifier, without(kept, "resetOnDelete"))
    assert metal.count("POST", "/batches") == 3
    [eth, *_] = [each["id"] for each in device["ports"] if each["type"] == "NetworkPort"]
    with pytest.raises(NotInTheLab, match="ports other than bonds that hold in layer 3, as eth0"):
        await port.create({"portId": eth, "bonded": True})
    metal.fault("status", method="GET", path="/ports/", status=403)
    assert await port.read(identifier, kept, inputs) == ("", {}, {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"state": "failed", "error_messages": ["no", "way"]}, r"batches/.* failed: no; way"),
        ({"state": "queued"}, r"batches/.* is still queued after 0 s"),
    ],
)
async def test_a_batch_that_fails_says_why_and_one_that_is_late_is_told(
    metal: Emulation, answer: Json, message: str
) -> None:
    metal.fault("status", method="GET", path="/batches/", status=200, body={"id": "b", **answer}, count=None)
    wanted = await given("Port")
    with pytest.raises(PluginError, match=message):
        await (await driver("Port")).create(wanted, timeout=0.05)


async def test_functions_tell_what_is_there(metal: Emulation) -> None:
    async def asked(name: str, /, **arguments: Any) -> Json:
        request = api.InvokeRequest(f"equinix-metal:index/{name}:{name}", wrap_map(arguments))
        answer = (await driver()).plugin.invoke(request)
        found = (await answer).return_value or {}
        assert not any(value.is_secret for value in found.values())
        return plain_map(found)

    _, block, _, _ = await made("ReservedIpBlock")
    found = await asked("getReservedIpBlock", id=block)
    assert members(found, ("id", "quantity", "type")) == {"id": block, "quantity": 4, "type": "public_ipv4"}
    assert not found.keys() & {"global", "description", "tags"}
    _, device, _, _ = await made("Device")
    session = await driver("BgpSession")
    await session.create({"deviceId": device, "addressFamily": "ipv4"})
    [neighbour] = (await asked("getDeviceBgpNeighbors", deviceId=device))["bgpNeighbors"]
    assert (neighbour["addressFamily"], neighbour["customerAs"], neighbour["md5Enabled"]) == (4, 65000, False)
    _, request, _, _ = await made("SpotMarketRequest")
    await eventually(lambda: len(metal.ids(f"/projects/{PROJECT}/devices")) == 2)
    found = await asked("getSpotMarketRequest", requestId=request)
    assert len(found["deviceIds"]) == 1
    assert (found["metro"], found["maxBidPrice"]) == ("lb", 0.73)
    with pytest.raises(PluginError, match="there is no such thing"):
        await asked("getReservedIpBlock", id=UNKNOWN)
