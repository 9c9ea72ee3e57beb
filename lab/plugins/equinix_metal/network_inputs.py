"""What the resource types of virtual networks, ports and gateways take. See `inputs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.equinix_metal.inputs import REPLACING, STRING
from lab.plugins.fields import Field
from lab.plugins.values import Json

REQUIRED = Field(kind="string", required=True, replace=True)
STRINGS = Field(kind="list", element=STRING)

VLAN: Mapping[str, Field] = {
    "projectId": REQUIRED,
    "description": REPLACING,
    "metro": REPLACING,
    "facility": REPLACING,
    "vxlan": Field(kind="integer", replace=True),
}

PORT: Mapping[str, Field] = {
    "portId": REQUIRED,
    "bonded": Field(kind="boolean", required=True),
    "layer2": Field(kind="boolean"),
    "nativeVlanId": STRING,
    "vlanIds": STRINGS,
    "vxlanIds": Field(kind="list", element=Field(kind="integer")),
    "resetOnDelete": Field(kind="boolean"),
}


SUBNET_SIZES = (8, 16, 32, 64, 128)

GATEWAY: Mapping[str, Field] = {
    "projectId": REQUIRED,
    "vlanId": REQUIRED,
    "ipReservationId": REPLACING,
    "privateIpv4SubnetSize": Field(kind="integer", replace=True),
}


def vlan_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """What holds between a virtual network's inputs."""
    yield from one_place(inputs)
    if inputs.get("facility") and inputs.get("vxlan"):
        yield CheckFailure("vxlan", "vxlan can be chosen in a metro only, not in a facility")


def port_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """What holds between a port's inputs, whatever kind of port it is."""
    vlans, vxlans, native = inputs.get("vlanIds"), inputs.get("vxlanIds"), inputs.get("nativeVlanId")
    if vlans and vxlans:
        yield CheckFailure("vxlanIds", "vxlanIds and vlanIds exclude each other: give one of them")
    wanted: list[Json] = vlans or vxlans or []
    if native and len(wanted) < 2:
        yield CheckFailure("nativeVlanId", "nativeVlanId needs a port with at least two virtual networks")


def gateway_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """Where a gateway has its addresses from."""
    size, block = inputs.get("privateIpv4SubnetSize"), inputs.get("ipReservationId")
    if size and block:
        yield CheckFailure(
            "privateIpv4SubnetSize", "privateIpv4SubnetSize and ipReservationId exclude each other: give one of them"
        )
    elif not size and not block:
        yield CheckFailure("ipReservationId", "one of ipReservationId and privateIpv4SubnetSize is required")
    if isinstance(size, float) and int(size) not in SUBNET_SIZES:
        sizes = ", ".join(str(each) for each in SUBNET_SIZES)
        yield CheckFailure("privateIpv4SubnetSize", f"privateIpv4SubnetSize must be one of {sizes}, not {int(size)}")


def one_place(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """Either a metro or a facility."""
    if inputs.get("metro") and inputs.get("facility"):
        yield CheckFailure("facility", "facility and metro exclude each other: give one of them")
    elif not inputs.get("metro") and not inputs.get("facility"):
        yield CheckFailure("metro", "one of metro and facility is required")
