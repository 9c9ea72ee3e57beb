"""The functions of the plug-in (Terraform's data sources), which only read.

These are the three that the program calls; the official plug-in has more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.bridged import read, read_all
from lab.plugins.equinix_metal.client import Client, Gone
from lab.plugins.equinix_metal.documents import Document
from lab.plugins.equinix_metal.table import RESERVED_IP_BLOCK, SPOT_MARKET_REQUEST, output, rows
from lab.plugins.fields import Field, problems
from lab.plugins.values import Json, plain_map, wrap_map

_NEIGHBOURS = rows(
    "bgp_neighbors",
    {
        "addressFamily": output("address_family", "integer"),
        "customerAs": output("customer_as", "integer"),
        "customerIp": output("customer_ip"),
        "md5Enabled": output("md5_enabled", "boolean"),
        "md5Password": output("md5_password"),
        "multihop": output("multihop", "boolean"),
        "peerAs": output("peer_as", "integer"),
        "peerIps": output("peer_ips", "list"),
        "routesIns": rows("routes_in", {"route": output("route"), "exact": output("exact", "boolean")}),
        "routesOuts": rows("routes_out", {"route": output("route"), "exact": output("exact", "boolean")}),
    },
)


def _neighbors(document: Document) -> dict[str, Json]:
    """Whom a device may announce addresses to; nobody as long as it has no BGP session."""
    return {"bgpNeighbors": read(_NEIGHBOURS, document)}


def _reserved_block(document: Document) -> dict[str, Json]:
    """The official function does not tell all that the resource does."""
    state = read_all(RESERVED_IP_BLOCK.own, document)
    return {name: value for name, value in state.items() if name not in ("description", "tags", "global")}


def _spot_request(document: Document) -> dict[str, Json]:
    return {
        **read_all(SPOT_MARKET_REQUEST.own, document),
        "deviceIds": [device["id"] for device in document.get("devices") or []],
        "plan": (document.get("plan") or {}).get("slug") or "",
        "endAt": document.get("end_at"),
    }


_NAMED: Mapping[str, tuple[str, str, str, Callable[[Document], dict[str, Json]]]] = {
    "getDeviceBgpNeighbors": ("deviceId", "/devices/{}/bgp/neighbors", "", _neighbors),
    "getReservedIpBlock": ("id", "/ips/{}", "facility,project,metro", _reserved_block),
    "getSpotMarketRequest": ("requestId", "/spot-market-requests/{}", SPOT_MARKET_REQUEST.include, _spot_request),
}
FUNCTIONS = {f"equinix-metal:index/{name}:{name}": found for name, found in _NAMED.items()}
"""By their tokens: the id that each takes, where the API has it, what it is asked to show with it, what is told."""


async def invoke(client: Client, request: api.InvokeRequest) -> api.InvokeResponse:
    """Argument and results together. As officially nothing is secret: one secret would make the whole result one, and
    with it every address that a program takes from it."""
    argument, path, include, told = FUNCTIONS[request.tok]
    failures = list(problems("equinix-metal", {argument: Field(required=True)}, request.args))
    if failures:
        return api.InvokeResponse({}, failures)
    given = plain_map(request.args)[argument]
    try:
        answer = await client.get(path.format(given), **({"include": include} if include else {}))
    except Gone as error:
        raise PluginError(f"{error}: there is no such thing, or not any more: refresh, then go on") from None
    found = {argument: given, "id": given, **told(answer.document)}
    return api.InvokeResponse(wrap_map({name: value for name, value in found.items() if value is not None}))
