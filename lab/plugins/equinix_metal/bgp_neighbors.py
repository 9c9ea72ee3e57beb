"""Whom a device may announce addresses to, as the API tells it at the moment."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client, Gone
from lab.plugins.fields import Field, problems
from lab.plugins.values import Json, plain_map, wrap, wrap_map

BGP_NEIGHBORS = "equinix-metal:index/getDeviceBgpNeighbors:getDeviceBgpNeighbors"

_ARGUMENTS: Mapping[str, Field] = {"deviceId": Field(kind="string", required=True)}


async def bgp_neighbors(client: Client, arguments: Mapping[str, PropertyValue]) -> api.InvokeResponse:
    """The device's neighbours; none as long as it has no BGP session."""
    failures = list(problems(_ARGUMENTS, arguments))
    if failures:
        return api.InvokeResponse({}, failures)
    device = plain_map(arguments)["deviceId"]
    try:
        document = (await client.get(f"/devices/{device}/bgp/neighbors")).document
    except Gone as error:
        raise PluginError(f"{error}: device {device} no longer exists: refresh, then go on") from None
    found = [_neighbor(each) for each in document.get("bgp_neighbors") or []]
    return api.InvokeResponse({**wrap_map({"id": device, "deviceId": device}), "bgpNeighbors": wrap(found)})


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
