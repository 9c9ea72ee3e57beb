"""Pure functions between the API's virtual networks, ports, gateways and connections, and the resources' properties."""

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


def connection_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a connection. The project of a shared one is that of its first circuit."""
    ports: list[dict[str, Json]] = document.get("ports") or []
    circuits: list[dict[str, Json]] = [circuit for port in ports for circuit in port.get("virtual_circuits") or []]
    shared = document.get("type") == "shared"
    project = reference(document, "project") or (reference(circuits[0], "project") if circuits else "")
    return {
        "id": document["id"],
        "organizationId": reference(document, "organization"),
        "projectId": project if shared else "",
        "name": document.get("name") or "",
        "description": document.get("description") or "",
        "status": document.get("status") or "",
        "redundancy": document.get("redundancy") or "",
        "facility": part(document, "facility", "code") or "",
        "metro": part(document, "metro", "code") or "",
        "token": document.get("token") or "",
        "type": document.get("type") or "",
        "speed": document.get("speed") or 0,
        "mode": document.get("mode") or "standard",
        "tags": document.get("tags") or [],
        "ports": [
            {
                "id": port.get("id") or "",
                "name": port.get("name") or "",
                "role": port.get("role") or "",
                "speed": port.get("speed") or 0,
                "status": port.get("status") or "",
                "linkStatus": port.get("link_status") or "",
                "virtualCircuitIds": [identity(circuit) for circuit in port.get("virtual_circuits") or []],
            }
            for port in ports
        ],
    }


def circuit_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a virtual circuit; its connection is known only to who ordered it."""
    return {
        "id": document["id"],
        "projectId": reference(document, "project"),
        "portId": reference(document, "port"),
        "vlanId": reference(document, "virtual_network"),
        "status": document.get("status") or "",
        "nniVlan": document.get("nni_vlan") or 0,
        "vnid": document.get("vnid") or 0,
        "nniVnid": document.get("nni_vnid") or 0,
        "name": document.get("name") or "",
        "speed": str(document.get("speed") or ""),
        "description": document.get("description") or "",
        "tags": document.get("tags") or [],
    }


def identity(document: Mapping[str, Json]) -> str:
    """The id of what is shown in full or only referred to."""
    return document.get("id") or last_part(document.get("href")) or ""


def reference(document: Mapping[str, Json], name: str) -> str:
    """The id of another that it names."""
    other = document.get(name)
    return identity(other) if isinstance(other, Mapping) else ""
