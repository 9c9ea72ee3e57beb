"""Pure functions between the API's virtual networks, ports and gateways, and the resources' properties."""

from __future__ import annotations

from collections.abc import Mapping

from lab.plugins.equinix_metal.documents import last_part, part
from lab.plugins.values import Json

PORT_INCLUDES = "native_virtual_network,virtual_networks"
BOND = "NetworkBondPort"
LAYER_2 = ("layer2-individual", "layer2-bonded")
LAYER_3 = ("layer3", "hybrid", "hybrid-bonded")


def vlan_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a virtual network."""
    return {
        "id": document["id"],
        "projectId": reference(document, "assigned_to"),
        "description": document.get("description") or "",
        "facility": document.get("facility_code") or part(document, "facility", "code") or "",
        "metro": document.get("metro_code") or part(document, "metro", "code") or "",
        "vxlan": document.get("vxlan") or 0,
    }


def port_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a port; what it does not have is left out."""
    networks: list[dict[str, Json]] = document.get("virtual_networks") or []
    kind = document.get("network_type") or ""
    state: dict[str, Json] = {
        "id": document["id"],
        "portId": document["id"],
        "type": document.get("type") or "",
        "name": document.get("name") or "",
        "networkType": kind,
        "mac": part(document, "data", "mac") or "",
        "bonded": bool(part(document, "data", "bonded")),
        "disbondSupported": bool(document.get("disbond_operation_supported")),
        "vlanIds": [network["id"] for network in networks],
        "vxlanIds": [network.get("vxlan") or 0 for network in networks],
    }
    if kind in LAYER_2 + LAYER_3:
        state["layer2"] = kind in LAYER_2
    if native := reference(document, "native_virtual_network"):
        state["nativeVlanId"] = native
    if document.get("bond"):
        state["bondId"] = part(document, "bond", "id") or ""
        state["bondName"] = part(document, "bond", "name") or ""
    return state


def gateway_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a gateway. Only private addresses were made for it, and have the size that was asked for."""
    block: Mapping[str, Json] = document.get("ip_reservation") or {}
    return {
        "id": document["id"],
        "projectId": reference(document, "project"),
        "vlanId": reference(document, "virtual_network"),
        "ipReservationId": reference(document, "ip_reservation"),
        "privateIpv4SubnetSize": 0 if block.get("public") else 1 << (32 - int(block.get("cidr") or 32)),
        "state": document.get("state") or "",
    }


def identity(document: Mapping[str, Json]) -> str:
    """The id of what is shown in full or only referred to."""
    return document.get("id") or last_part(document.get("href")) or ""


def reference(document: Mapping[str, Json], name: str) -> str:
    """The id of another that it names."""
    other = document.get(name)
    return identity(other) if isinstance(other, Mapping) else ""
