"""Blocks of addresses, virtual networks, gateways, connections and virtual circuits.

Three results are officially never filled in: whether a reserved block is global, which devices a virtual network has,
the tags of a virtual circuit. They are left out here too, or a program could come to need what only the lab tells it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.connection import Connection
from lab.plugins.equinix_metal.documents import block_state, part
from lab.plugins.equinix_metal.functions.base import (
    REQUIRED,
    STRING,
    Arguments,
    Function,
    at_most_one,
    everything,
    the_only,
)
from lab.plugins.equinix_metal.gateway import Gateway
from lab.plugins.equinix_metal.network_documents import (
    circuit_state,
    connection_state,
    gateway_state,
    vlan_state,
)
from lab.plugins.fields import Field
from lab.plugins.values import UNKNOWN, Json


async def _reserved_block(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    if arguments.get("id"):
        document = (await client.get(f"/ips/{arguments['id']}", include="facility,project,metro")).document
        return _without(_block(document), "global")
    project, wanted = arguments["projectId"], ipaddress.ip_address(arguments["ipAddress"])
    for document in await everything(client, f"/projects/{project}/ips", "ip_addresses"):
        state = _block(document)
        if wanted in ipaddress.ip_network(state["cidrNotation"]):
            return _without(state, "global")
    raise PluginError(f"project {project} has reserved no block with {wanted}")


def _reserved_block_rules(arguments: Arguments) -> Iterator[CheckFailure]:
    project, address = arguments.get("projectId"), arguments.get("ipAddress")
    if arguments.get("id"):
        for name in ("projectId", "ipAddress"):
            if arguments.get(name):
                yield CheckFailure(name, f"{name} and id exclude each other: give one of them")
    elif not project or not address:
        yield CheckFailure("id", "either id is required, or projectId and ipAddress")
    elif address != UNKNOWN:
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            yield CheckFailure("ipAddress", f"ipAddress must be an address: {error}")


async def _precreated_block(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    project, public, family = arguments["projectId"], arguments["public"], int(arguments["addressFamily"])
    place = "facility" if arguments.get("facility") else "metro" if arguments.get("metro") else ""
    for document in await everything(client, f"/projects/{project}/ips", "ip_addresses"):
        here = (
            part(document, place, "code") == arguments[place]
            if place
            else bool(document.get("global_ip")) is arguments["global"]
        )
        if here and bool(document.get("public")) is public and document.get("address_family") == family:
            return {**_block(document), "global": arguments["global"]}
    kind = f"{'public' if public else 'private'} IPv{family}"
    where = f" in {place} {arguments[place]}" if place else ""
    raise PluginError(f"project {project} has no block of {kind} addresses{where}")


def _precreated_block_rules(arguments: Arguments) -> Iterator[CheckFailure]:
    yield from at_most_one("metro", "facility")(arguments)
    if arguments.get("global") and not arguments.get("public"):
        yield CheckFailure("global", "global addresses are public ones")
    if arguments.get("global") and (arguments.get("metro") or arguments.get("facility")):
        yield CheckFailure("global", "global addresses are in no metro and no facility")


def _block(document: Mapping[str, Json]) -> dict[str, Json]:
    """What is told of a block as its resource does, but for what may be said about it."""
    return _without(block_state(document), "description", "tags")


def _without(state: Mapping[str, Json], *names: str) -> dict[str, Json]:
    return {name: value for name, value in state.items() if name not in names}


async def _ranges(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    project, facility = arguments["projectId"], arguments.get("facility")
    metro = str(arguments.get("metro") or "").lower()
    found: dict[str, list[str]] = {"publicIpv4s": [], "globalIpv4s": [], "privateIpv4s": [], "ipv6s": []}
    for document in await everything(client, f"/projects/{project}/ips", "ip_addresses"):
        state = block_state(document)
        kind = state["type"].replace("_ipv4", "Ipv4s") if state["addressFamily"] == 4 else "ipv6s"
        here = state.get("facility") == (facility or state.get("facility"))
        if kind == "globalIpv4s" or (here and state.get("metro") == (metro or state.get("metro"))):
            found[kind].append(state["cidrNotation"])
    place = facility or metro
    return {"id": f"{project}-{place}-IPs" if place else f"{project}-IPs", "metro": metro or None, **found}


async def _vlan(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    include = "assigned_to"
    if arguments.get("vlanId"):
        document = (await client.get(f"/virtual-networks/{arguments['vlanId']}", include=include)).document
    else:
        project, vxlan = arguments["projectId"], int(arguments.get("vxlan") or 0)
        path = f"/projects/{project}/virtual-networks"
        wanted = {name: arguments[name] for name in ("metro", "facility") if arguments.get(name)}

        def fits(state: Mapping[str, Json]) -> bool:
            there = all(str(state[name]).lower() == str(value).lower() for name, value in wanted.items())
            return there and vxlan in (0, state["vxlan"])

        networks = await everything(client, path, "virtual_networks", include=include)
        found = [network for network in networks if fits(vlan_state(network))]
        document = the_only(found, f"virtual network of project {project} with {wanted | {'vxlan': vxlan or 'any'}}")
    return {**vlan_state(document), "vlanId": document["id"]}


def _vlan_rules(arguments: Arguments) -> Iterator[CheckFailure]:
    yield from at_most_one("metro", "facility")(arguments)
    for name in ("projectId", "vxlan", "metro", "facility"):
        if arguments.get("vlanId") and arguments.get(name):
            yield CheckFailure(name, f"{name} and vlanId exclude each other: give one of them")
    if not arguments.get("vlanId") and not arguments.get("projectId"):
        yield CheckFailure("vlanId", "either vlanId is required, or projectId and what tells the network from others")


async def _gateway(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    path = f"/metal-gateways/{arguments['gatewayId']}"
    return gateway_state((await client.get(path, include=Gateway.include)).document)


async def _connection(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    path = f"/connections/{arguments['connectionId']}"
    return connection_state((await client.get(path, include=Connection.include)).document)


async def _circuit(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    path = f"/virtual-circuits/{arguments['virtualCircuitId']}"
    state = circuit_state((await client.get(path, include="project")).document)
    return _without(state, "portId", "vlanId", "speed", "tags")


RESERVED_IP_BLOCK = Function(
    arguments={"id": STRING, "projectId": STRING, "ipAddress": STRING},
    look=_reserved_block,
    rules=_reserved_block_rules,
)
PRECREATED_IP_BLOCK = Function(
    arguments={
        "projectId": REQUIRED,
        "addressFamily": Field(kind="integer", required=True),
        "public": Field(kind="boolean", required=True),
        "global": Field(kind="boolean", default=False),
        "metro": STRING,
        "facility": STRING,
    },
    look=_precreated_block,
    rules=_precreated_block_rules,
)
IP_BLOCK_RANGES = Function(arguments={"projectId": REQUIRED, "metro": STRING, "facility": STRING}, look=_ranges)
VLAN = Function(
    arguments={
        "vlanId": STRING,
        "projectId": STRING,
        "vxlan": Field(kind="integer"),
        "metro": STRING,
        "facility": STRING,
    },
    look=_vlan,
    rules=_vlan_rules,
)
GATEWAY = Function(arguments={"gatewayId": REQUIRED}, look=_gateway)
CONNECTION = Function(arguments={"connectionId": REQUIRED}, look=_connection)
VIRTUAL_CIRCUIT = Function(arguments={"virtualCircuitId": REQUIRED}, look=_circuit)
