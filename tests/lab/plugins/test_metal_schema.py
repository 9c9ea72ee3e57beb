"""The stand-in knows the resources that the program makes, in the official SDK's types: inputs and outputs."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_equinix_metal as sdk
import pytest

from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.main import EquinixMetalPlugin
from lab.plugins.fields import Field
from lab.plugins.values import plain_map
from tests.lab.plugins.fake_metal import PROJECT
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import Driver, Heard, run
from tests.lab.plugins.test_metal_accounts import SPOT, quick_spot
from tests.lab.plugins.test_metal_networks import VLAN, made
from tests.lab.plugins.test_metal_resources import INPUTS, metal, quick_polls

__all__ = ["metal", "quick_polls", "quick_spot"]

KINDS = {str: "string", bool: "boolean", int: "integer", float: "number"}

_ROOT = Path(__file__).resolve().parents[3]
_types: Any = importlib.import_module("pulumi._types")
PLUGIN = EquinixMetalPlugin(Heard())
RESOURCES = {token.rpartition(":")[2]: found for token, found in PLUGIN.resources.items()}


def test_it_knows_the_resources_that_the_program_makes_and_no_others() -> None:
    sources = [path.read_text() for room in ("components", "stacks") for path in (_ROOT / room).rglob("*.py")]
    made = {name for text in sources for name in re.findall(r"\bmetal\.([A-Z]\w*)\(", text)}
    made = {name for name in made if issubclass(getattr(sdk, name), pulumi.CustomResource)} - {"Provider"}
    assert made == RESOURCES.keys() and len(made) > 5


def unwrapped(kind: Any) -> Any:
    """The type within Input, Output and Optional."""
    members = [member for member in typing.get_args(kind) if not _is_wrapper(member)]
    return unwrapped(members[0]) if typing.get_origin(kind) is typing.Union else kind


def _is_wrapper(kind: Any) -> bool:
    origin = typing.get_origin(kind) or kind
    return origin is type(None) or getattr(origin, "__name__", "") in ("Awaitable", "Output")


def misfits(known: Field, wanted: Any, path: str) -> list[str]:
    """Where a field is not of the SDK's type."""
    kind = unwrapped(wanted)
    if typing.get_origin(kind) is not None:
        member = unwrapped(typing.get_args(kind)[0])
        if known.kind != "list" or known.element is None:
            return [f"{path} is a list of {member}"]
        return misfits(known.element, member, f"{path}[]")
    if kind in KINDS:
        return [] if known.kind == KINDS[kind] else [f"{path} is {kind}"]
    if known.kind != "object":
        return [f"{path} is {kind}"]
    return fields_misfit(known.fields, kind, f"{path}.")


def fields_misfit(fields: Mapping[str, Field], wanted: type, path: str) -> list[str]:
    types: dict[str, Any] = _types.input_type_types(wanted)
    names: dict[str, str] = _types.input_type_py_to_pulumi_names(wanted)
    required = {
        names[name]
        for name, parameter in inspect.signature(wanted.__init__).parameters.items()
        if name in names and parameter.default is inspect.Parameter.empty
    }
    found = [f"{path}{name}: {'unknown' if name in types else 'made up'}" for name in fields.keys() ^ types.keys()]
    found += [f"{path}{name}: required?" for name in fields if fields[name].required != (name in required)]
    return found + [
        it for name in fields.keys() & types.keys() for it in misfits(fields[name], types[name], path + name)
    ]


COMPUTED_MEMBERS = {
    "SpotMarketRequest": {".instanceParameters.termintationTime: unknown"},
}
"""Outputs that the SDK takes as inputs, too, because Terraform knows no difference within objects."""


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_inputs_are_those_of_the_sdk(name: str) -> None:
    resource = RESOURCES[name]
    assert isinstance(resource, Bridged)
    found = fields_misfit(resource.fields, getattr(sdk, f"{name}Args"), ".")
    assert set(found) == COMPUTED_MEMBERS.get(name, set())


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_outputs_are_those_of_the_sdk(name: str) -> None:
    resource = RESOURCES[name]
    assert isinstance(resource, Bridged)
    outputs: dict[str, Any] = _types.resource_types(getattr(sdk, name))
    assert outputs.keys() == resource.fields.keys() | set(resource.computed)


def wrong(value: Any, wanted: Any, path: str) -> list[str]:
    """Where a value is not what the SDK expects."""
    kind = unwrapped(wanted)
    if value is None or kind is Any:
        return []
    if typing.get_origin(kind) is not None:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return [f"{path} is no list"]
        return [
            it for index, each in enumerate(value) for it in wrong(each, typing.get_args(kind)[0], f"{path}[{index}]")
        ]
    if kind in KINDS:
        given = type(value)
        fits = given is kind or (given is float and (kind is float or (kind is int and value.is_integer())))
        return [] if fits else [f"{path} is {value!r}, not {kind}"]
    return members_wrong(value, _types.output_type_types(kind), path)


def members_wrong(values: Mapping[str, Any], types: Mapping[str, Any], path: str) -> list[str]:
    made_up = [f"{path}.{name} is made up" for name in values.keys() - types.keys()]
    return made_up + [
        it for name in values.keys() & types.keys() for it in wrong(values[name], types[name], f"{path}.{name}")
    ]


def check_state(name: str, state: Mapping[str, Any]) -> None:
    shown = {key: value for key, value in state.items() if key not in ("id", "__meta")}
    assert members_wrong(shown, _types.resource_types(getattr(sdk, name)), name) == []


def test_what_is_made_has_the_types_of_the_sdk(metal: FakePlatform) -> None:
    async def scenario() -> None:
        states: dict[str, tuple[Driver, str, Any, Any]] = {}

        async def make(name: str, given: Any) -> str:
            states[name] = await made(name, given)
            return states[name][1]

        await make("Project", {"name": "p", "bgpConfig": {"deploymentType": "local", "asn": 65000}})
        await make("ProjectSshKey", {"projectId": PROJECT, "name": "k", "publicKey": "ssh-ed25519 A"})
        addresses = [{"type": "public_ipv4", "cidr": 29}]
        device = await make("Device", {**INPUTS, "ipAddresses": addresses, "reinstall": {"enabled": True}})
        vlan = await make("Vlan", {**VLAN, "vxlan": 1001})
        bond, _ = metal.add_ports()
        await make("Port", {"portId": bond["id"], "bonded": True, "vlanIds": [vlan]})
        await make("Gateway", {"projectId": PROJECT, "vlanId": vlan, "privateIpv4SubnetSize": 16})
        await make("ReservedIpBlock", {"projectId": PROJECT, "quantity": 4, "metro": "lb"})
        await make("BgpSession", {"deviceId": device, "addressFamily": "ipv4"})
        await make("SpotMarketRequest", SPOT)
        assert states.keys() == RESOURCES.keys()
        for name, (resource, identifier, state, inputs) in states.items():
            check_state(name, state)
            check_state(name, (await resource.read(identifier, state, inputs))[1])
            preview = await resource.create(inputs, preview=True)
            assert plain_map(preview[1]).keys() <= _types.resource_types(getattr(sdk, name)).keys()

    run(scenario())
