"""The functions of the plug-in, Terraform's data sources: what is there, without making or keeping anything.

These are the three that the program calls; the official plug-in has more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client, Gone
from lab.plugins.equinix_metal.documents import block_state, part
from lab.plugins.equinix_metal.spot_documents import spot_devices, spot_request_state
from lab.plugins.equinix_metal.spot_market_request import SpotMarketRequest
from lab.plugins.fields import Field, problems
from lab.plugins.values import Json, plain_map, wrap_map

_UNTOLD = frozenset({"description", "tags", "global"})
"""What the resource tells of a block, and the official function does not."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of the plug-in."""

    argument: str
    """The id that it takes."""
    look: Callable[[Client, str], Awaitable[dict[str, Json]]]
    """What it finds, without the argument."""

    async def invoke(self, client: Client, given: Mapping[str, PropertyValue]) -> api.InvokeResponse:
        """Argument and results together. As officially nothing is secret: one secret would make the whole result one,
        and with it every address that a program takes from it."""
        failures = list(problems({self.argument: Field(kind="string", required=True)}, given))
        if failures:
            return api.InvokeResponse({}, failures)
        arguments = plain_map(given)
        try:
            found = await self.look(client, str(arguments[self.argument]))
        except Gone as error:
            raise PluginError(f"{error}: there is no such thing, or not any more: refresh, then go on") from None
        told = {name: value for name, value in {**arguments, **found}.items() if value is not None}
        return api.InvokeResponse(wrap_map(told))


async def _neighbors(client: Client, device: str) -> dict[str, Json]:
    """Whom a device may announce addresses to; nobody as long as it has no BGP session."""
    document = (await client.get(f"/devices/{device}/bgp/neighbors")).document
    return {"id": device, "bgpNeighbors": [_neighbor(each) for each in document.get("bgp_neighbors") or []]}


def _neighbor(entry: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "addressFamily": entry.get("address_family") or 0,
        "customerAs": entry.get("customer_as") or 0,
        "customerIp": entry.get("customer_ip") or "",
        "md5Enabled": bool(entry.get("md5_enabled")),
        "md5Password": entry.get("md5_password") or "",
        "multihop": bool(entry.get("multihop")),
        "peerAs": entry.get("peer_as") or 0,
        "peerIps": entry.get("peer_ips") or [],
        "routesIns": _routes(entry.get("routes_in")),
        "routesOuts": _routes(entry.get("routes_out")),
    }


def _routes(entries: Json) -> list[Json]:
    return [{"route": each.get("route") or "", "exact": bool(each.get("exact"))} for each in entries or []]


async def _reserved_block(client: Client, identity: str) -> dict[str, Json]:
    document = (await client.get(f"/ips/{identity}", include="facility,project,metro")).document
    return {name: value for name, value in block_state(document).items() if name not in _UNTOLD}


async def _spot_request(client: Client, identity: str) -> dict[str, Json]:
    path = f"/spot-market-requests/{identity}"
    document = (await client.get(path, include=SpotMarketRequest.include)).document
    state = spot_request_state(document)
    return {
        **state,
        "metro": state["metro"].lower() or None,
        "deviceIds": [device["id"] for device in spot_devices(document)],
        "plan": part(document, "plan", "slug") or "",
        "endAt": document.get("end_at"),
    }


_NAMED = {
    "getDeviceBgpNeighbors": Function(argument="deviceId", look=_neighbors),
    "getReservedIpBlock": Function(argument="id", look=_reserved_block),
    "getSpotMarketRequest": Function(argument="requestId", look=_spot_request),
}
FUNCTIONS: Mapping[str, Function] = {f"equinix-metal:index/{name}:{name}": found for name, found in _NAMED.items()}
"""By their tokens."""
