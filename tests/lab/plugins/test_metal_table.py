"""The table of resource types against the official SDK, and differences against what the official plug-in told."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_equinix_metal as sdk
import pytest
from pulumi.provider.experimental import provider as api

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.equinix_metal.functions import FUNCTIONS
from lab.plugins.equinix_metal.main import EquinixMetalPlugin
from lab.plugins.equinix_metal.table import DEVICE as DEVICE_TYPE
from lab.plugins.equinix_metal.table import TYPES
from lab.plugins.fields import Field
from lab.plugins.values import UNKNOWN, plain_map, wrap_map
from tests.lab.plugins.harness import Heard, Json
from tests.lab.plugins.metal_types import BLOCK, DEVICE, GIVEN, SPOT, VLAN, changed, driver

pytestmark = pytest.mark.usefixtures("closed")

_ROOT = Path(__file__).resolve().parents[3]
_SOURCES = [path.read_text() for room in ("components", "stacks") for path in (_ROOT / room).rglob("*.py")]
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number"}
_types: Any = importlib.import_module("pulumi._types")


def test_it_knows_the_resources_and_functions_of_the_program_and_no_others() -> None:
    named = {name for text in _SOURCES for name in re.findall(r"\bmetal\.([A-Z]\w*)\(", text)}
    resources = {name for name in named if issubclass(getattr(sdk, name), pulumi.CustomResource)} - {"Provider"}
    assert resources == TYPES.keys() and len(resources) > 5
    called = {token for text in _SOURCES for token in re.findall(r'"(equinix-metal:index/get\w+:get\w+)"', text)}
    assert called == FUNCTIONS.keys() and called


# --- the SDK -------------------------------------------------------------------------------------------------------


def _unwrapped(kind: Any) -> Any:
    """The type within Input, Output and Optional."""

    def is_wrapper(member: Any) -> bool:
        origin = typing.get_origin(member) or member
        return origin is type(None) or getattr(origin, "__name__", "") in ("Awaitable", "Output")

    members = [member for member in typing.get_args(kind) if not is_wrapper(member)]
    return _unwrapped(members[0]) if typing.get_origin(kind) is typing.Union else kind


def _misfits(known: Field, wanted: Any, path: str) -> list[str]:
    """Where a field is not of the SDK's type; nobody can give what is absent."""
    kind = _unwrapped(wanted)
    if known.absent:
        return []
    if typing.get_origin(kind) is not None:
        member = _unwrapped(typing.get_args(kind)[0])
        if known.kind != "list" or known.element is None:
            return [f"{path} is a list of {member}"]
        return _misfits(known.element, member, f"{path}[]")
    if kind in _KINDS:
        return [] if known.kind == _KINDS[kind] else [f"{path} is {kind}"]
    return _fields_misfit(known.fields, kind, f"{path}.") if known.kind == "object" else [f"{path} is {kind}"]


def _fields_misfit(fields: Mapping[str, Field], wanted: type, path: str) -> list[str]:
    types: dict[str, Any] = _types.input_type_types(wanted)
    names: dict[str, str] = _types.input_type_py_to_pulumi_names(wanted)
    required = {
        names[name]
        for name, parameter in inspect.signature(wanted.__init__).parameters.items()
        if name in names and parameter.default is inspect.Parameter.empty
    }
    found = [f"{path}{name}: {'unknown' if name in types else 'made up'}" for name in fields.keys() ^ types.keys()]
    found += [f"{path}{name}: required?" for name in fields if fields[name].required != (name in required)]
    known = fields.keys() & types.keys()
    return found + [it for name in known for it in _misfits(fields[name], types[name], path + name)]


_DIFFERENT = {
    # Terraform knows no difference between inputs and outputs within objects.
    "SpotMarketRequest": {".instanceParameters.termintationTime: unknown"},
    # The other way to give a gateway addresses is not in the lab.
    "Gateway": {".privateIpv4SubnetSize: required?"},
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_inputs_and_outputs_are_those_of_the_sdk(name: str) -> None:
    kind = TYPES[name]
    assert set(_fields_misfit(kind.inputs, getattr(sdk, f"{name}Args"), ".")) == _DIFFERENT.get(name, set())
    assert _types.resource_types(getattr(sdk, name)).keys() == kind.properties.keys()


# --- differences and refusals --------------------------------------------------------------------------------------

DEFAULTS: Json = {
    "__defaults": ["alwaysPxe", "forceDetachVolumes", "waitForReservationDeprovision"],
    "alwaysPxe": False,
    "forceDetachVolumes": False,
    "waitForReservationDeprovision": False,
}
STATES: dict[str, Json] = {
    "Device": {
        **changed({**DEVICE, **DEFAULTS}, {"__defaults": None}),
        "metro": "lb",
        "billingCycle": "hourly",
        "deployedFacility": "lab1",
        "deployedHardwareReservationId": "r",
        "facilities": ["lab1"],
        "state": "active",
        "terminationTime": "",
    },
    "Vlan": {**VLAN, "metro": "lb", "facility": "", "vxlan": 1000},
    "ReservedIpBlock": {**BLOCK, "metro": "lb", "type": "public_ipv4", "tags": ["b", "a"]},
    "BgpSession": {"deviceId": "d", "addressFamily": "ipv4", "defaultRoute": False},
    "Gateway": {**GIVEN["Gateway"], "vlanId": "v", "ipReservationId": "i"},
    "Port": {"portId": "p", "bonded": True, "layer2": False, "vlanIds": ["v", "w"], "vxlanIds": [7, 8]},
    "Project": {
        "name": "p",
        "organizationId": "AB",
        "bgpConfig": {"deploymentType": "local", "asn": 65000, "status": "x"},
    },
    "ProjectSshKey": GIVEN["ProjectSshKey"],
    "SpotMarketRequest": {**SPOT, "metro": "lb", "facilities": ["lab1"]},
}
INPUTS: dict[str, Json] = {
    "Device": {**DEVICE, **DEFAULTS},
    "ReservedIpBlock": {**BLOCK, "type": "public_ipv4"},
    "Gateway": {**GIVEN["Gateway"], "vlanId": "v"},
    "Port": {"portId": "p", "bonded": True, "layer2": False, "vlanIds": ["v", "w"]},
    "Project": {"name": "p", "organizationId": "ab", "bgpConfig": {"deploymentType": "local", "asn": 65000}},
    "BgpSession": {"deviceId": "d", "addressFamily": "ipv4", "defaultRoute": False},
    "ProjectSshKey": GIVEN["ProjectSshKey"],
    "SpotMarketRequest": SPOT,
    "Vlan": VLAN,
}
NOTHING: dict[str, str] = {}
_PARAMETERS = SPOT["instanceParameters"]
DIFFERENCES: list[tuple[str, Json, dict[str, str]]] = [
    *((kind, {}, NOTHING) for kind in sorted(STATES)),
    ("Device", {"hostname": "x"}, {"hostname": "UPDATE"}),
    ("Device", {"hostname": None}, NOTHING),
    ("Device", {"hostname": UNKNOWN}, {"hostname": "UPDATE"}),
    ("Device", {"description": "x"}, {"description": "ADD"}),
    ("Device", {"tags": ["a", "c"]}, {"tags[1]": "UPDATE"}),
    ("Device", {"tags": ["a"]}, {"tags[1]": "DELETE"}),
    ("Device", {"tags": ["a", "b", "c"]}, {"tags[2]": "ADD"}),
    ("Device", {"tags": None}, {"tags[0]": "DELETE", "tags[1]": "DELETE"}),
    ("Device", {"tags": [UNKNOWN, "b"]}, {"tags": "UPDATE"}),
    ("Device", {"userData": "y"}, {"userData": "UPDATE_REPLACE"}),
    ("Device", {"userData": None}, {"userData": "DELETE_REPLACE"}),
    ("Device", {"userData": UNKNOWN}, {"userData": "UPDATE_REPLACE"}),
    ("Device", {"customData": "y"}, {"customData": "ADD_REPLACE"}),
    ("Device", {"operatingSystem": "ubuntu_20_04"}, {"operatingSystem": "UPDATE_REPLACE"}),
    ("Device", {"plan": "z"}, {"plan": "UPDATE_REPLACE"}),
    ("Device", {"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ("Device", {"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
    ("Device", {"metro": None}, NOTHING),
    ("Device", {"metro": None, "facilities": ["lab1", "da11"]}, NOTHING),
    ("Device", {"metro": None, "facilities": ["any"]}, NOTHING),
    ("Device", {"metro": None, "facilities": ["da11"]}, {"facilities[0]": "UPDATE_REPLACE"}),
    ("Device", {"ipxeScriptUrl": "z"}, {"ipxeScriptUrl": "UPDATE"}),
    ("Device", {"alwaysPxe": True}, {"alwaysPxe": "UPDATE"}),
    ("Device", {"billingCycle": "monthly"}, {"billingCycle": "UPDATE_REPLACE"}),
    ("Device", {"hardwareReservationId": "h"}, {"hardwareReservationId": "ADD_REPLACE"}),
    ("Device", {"hardwareReservationId": "r"}, NOTHING),
    ("Device", {"projectSshKeyIds": ["a"]}, {"projectSshKeyIds[0]": "ADD_REPLACE"}),
    ("Device", {"terminationTime": "2031-09-03T16:32:00Z"}, {"terminationTime": "ADD"}),
    ("Device", {"waitForReservationDeprovision": True}, {"waitForReservationDeprovision": "UPDATE"}),
    ("Vlan", {"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
    ("Vlan", {"metro": None}, {"metro": "DELETE_REPLACE"}),
    ("Vlan", {"description": None}, {"description": "DELETE_REPLACE"}),
    ("Vlan", {"vxlan": 1000}, NOTHING),
    ("Vlan", {"vxlan": 7}, {"vxlan": "UPDATE_REPLACE"}),
    ("Vlan", {"facility": "lab1"}, {"facility": "UPDATE_REPLACE"}),
    ("Vlan", {"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ("ReservedIpBlock", {"quantity": 8}, {"quantity": "UPDATE_REPLACE"}),
    ("ReservedIpBlock", {"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
    ("ReservedIpBlock", {"description": "x"}, {"description": "UPDATE_REPLACE"}),
    ("ReservedIpBlock", {"tags": ["a", "b"]}, NOTHING),
    ("ReservedIpBlock", {"tags": ["b", "c"]}, {"tags[1]": "UPDATE_REPLACE"}),
    ("ReservedIpBlock", {"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ("BgpSession", {"deviceId": "e"}, {"deviceId": "UPDATE_REPLACE"}),
    ("BgpSession", {"defaultRoute": True}, {"defaultRoute": "UPDATE_REPLACE"}),
    ("Gateway", {"vlanId": "w"}, {"vlanId": "UPDATE_REPLACE"}),
    ("Gateway", {"privateIpv4SubnetSize": 8}, {"privateIpv4SubnetSize": "UPDATE_REPLACE"}),
    ("Port", {"vlanIds": ["w", "v"]}, NOTHING),
    ("Port", {"vlanIds": None}, NOTHING),
    ("Port", {"vlanIds": ["v", "w", "x"]}, {"vlanIds[2]": "ADD"}),
    ("Port", {"vlanIds": ["w"]}, {"vlanIds[0]": "DELETE"}),
    ("Port", {"portId": "x"}, {"portId": "UPDATE_REPLACE"}),
    ("Project", {"organizationId": "another"}, {"organizationId": "UPDATE_REPLACE"}),
    ("Project", {"organizationId": None}, NOTHING),
    ("Project", {"name": "new"}, {"name": "UPDATE"}),
    ("ProjectSshKey", {"publicKey": "z"}, {"publicKey": "UPDATE_REPLACE"}),
    ("ProjectSshKey", {"name": "z"}, {"name": "UPDATE"}),
    # A price is officially another one only from fifty times the old one on.
    ("SpotMarketRequest", {"maxBidPrice": 0.01}, NOTHING),
    ("SpotMarketRequest", {"maxBidPrice": 99}, {"maxBidPrice": "UPDATE_REPLACE"}),
    ("SpotMarketRequest", {"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
    ("SpotMarketRequest", {"devicesMax": 2}, {"devicesMax": "UPDATE_REPLACE"}),
    (
        "SpotMarketRequest",
        {"instanceParameters": {**_PARAMETERS, "plan": "x"}},
        {"instanceParameters.plan": "UPDATE_REPLACE"},
    ),
]
"""Measured with the official plug-in, on the same states."""


@pytest.mark.parametrize(("kind", "change", "found"), DIFFERENCES)
async def test_differences_are_those_of_the_official_plugin(kind: str, change: Json, found: dict[str, str]) -> None:
    wanted, resource = changed(INPUTS[kind], change), await driver(kind)
    assert await resource.diff(STATES[kind], wanted) == found
    ignored = tuple({path.split(".")[0].split("[")[0] for path in found})
    assert await resource.diff(STATES[kind], wanted, ignored) == {}


@pytest.mark.parametrize(
    ("kind", "given", "wrong"),
    [
        ("Device", changed(DEVICE, {"plan": None, "projectId": None}), {"plan", "projectId"}),
        ("Device", {**DEVICE, "tag": ["a"]}, {"tag"}),
        ("Device", {**DEVICE, "tags": "x", "alwaysPxe": "yes"}, {"tags", "alwaysPxe"}),
        ("Device", {**DEVICE, "ipAddresses": [{"type": "ipv5"}]}, {"ipAddresses[0].type"}),
        ("ReservedIpBlock", {}, {"projectId", "quantity"}),
        ("ReservedIpBlock", {**BLOCK, "quantity": 1.5}, {"quantity"}),
        ("BgpSession", {"deviceId": "d", "addressFamily": "ipx"}, {"addressFamily"}),
        ("Gateway", {"projectId": "p", "vlanId": "v"}, {"privateIpv4SubnetSize"}),
        ("Port", {"portId": "p"}, {"bonded"}),
        (
            "SpotMarketRequest",
            {**SPOT, "instanceParameters": changed(_PARAMETERS, {"plan": None, "hostnames": ["a"]})},
            {"instanceParameters.plan", "instanceParameters.hostnames"},
        ),
    ],
)
async def test_wrong_inputs_are_refused_before_anything_is_ordered(kind: str, given: Json, wrong: set[str]) -> None:
    _, failures = await (await driver(kind)).check(given)
    assert failures.keys() == wrong
    assert all(name in reason for name, reason in failures.items())


@pytest.mark.parametrize(
    ("kind", "given", "what"),
    [
        ("Device", {"storage": "{}"}, "storage"),
        (
            "Device",
            {"ipAddresses": [{"type": "public_ipv4", "reservationIds": ["r"]}]},
            r"ipAddresses\[0\].reservation",
        ),
        ("Port", {"portId": "p", "bonded": False}, "bonded False"),
        ("Port", {"portId": "p", "bonded": True, "layer2": True}, "layer2 True"),
        ("Gateway", {"ipReservationId": "i"}, "ipReservationId"),
        ("SpotMarketRequest", {"waitForDevices": True}, "waitForDevices True"),
        ("Volume", {}, "the resource type equinix-metal:index/volume:Volume"),
    ],
)
async def test_what_only_the_official_plugin_has_is_refused_by_name(kind: str, given: Json, what: str) -> None:
    with pytest.raises(NotInTheLab, match=f"equinix-metal does not implement .*{what}.*; install the official"):
        await (await driver(kind)).check(given)


async def test_functions_and_the_configuration_are_checked() -> None:
    plugin = EquinixMetalPlugin(Heard())
    with pytest.raises(NotInTheLab, match="index/getVolume:getVolume"):
        await plugin.invoke(api.InvokeRequest("equinix-metal:index/getVolume:getVolume", {}))
    token = "equinix-metal:index/getSpotMarketRequest:getSpotMarketRequest"
    refused = await plugin.invoke(api.InvokeRequest(token, {}))
    assert [failure.property for failure in refused.failures or []] == ["requestId"]
    for given, wrong in (({"authToken": UNKNOWN, "version": "3.2.1"}, []), ({"endpoint": "x"}, ["endpoint"])):
        answer = await plugin.check_config(api.CheckRequest("", {}, wrap_map(given), b""))
        assert [failure.property for failure in answer.failures or []] == wrong


async def test_a_preview_asks_nobody_and_needs_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAL_API_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("METAL_AUTH_TOKEN", raising=False)
    device = await driver(auth="")
    inputs = await device.inputs({**DEVICE, "projectId": UNKNOWN})
    identifier, previewed = await device.create(inputs, preview=True)
    assert not identifier
    with pytest.raises(PluginError, match="authToken is required"):
        await device.create(inputs)
    state = plain_map(previewed)
    told_later = {name for name, it in DEVICE_TYPE.own.items() if it.output or it.filled} | {"projectId"}
    assert {name for name, value in state.items() if value == UNKNOWN} == told_later - {"hostname"}
    assert state["hostname"] == "lab-worker-0"


async def test_a_made_up_name_stays() -> None:
    project = await driver("Project")
    inputs = await project.inputs({})
    assert re.fullmatch("it-[0-9a-f]{7}", inputs["name"]) and "name" in inputs["__defaults"]
    assert (await project.check({}, old=inputs))[0]["name"] == inputs["name"]
