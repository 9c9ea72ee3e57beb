"""Whom a device may announce addresses to, as the API tells it at the moment."""

from __future__ import annotations

from collections.abc import Mapping

from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.functions.base import REQUIRED, Function
from lab.plugins.values import Json


async def _neighbors(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    """None as long as the device has no BGP session."""
    device = arguments["deviceId"]
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


BGP_NEIGHBORS = Function(arguments={"deviceId": REQUIRED}, look=_neighbors)
