"""Ports and what is on them as the API shows them."""

from __future__ import annotations

from lab.metal_api.devices.models import Device
from lab.metal_api.devices.network import BOND, NAMES, interfaces, port_id
from lab.metal_api.listing import BASE, link
from lab.metal_api.ports import models
from lab.metal_api.ports.batches import VlanBatch
from lab.metal_api.ports.models import Port, VlanAssignment
from lab.metal_api.records import Json
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork


def documents(account: Account, device: Device) -> list[Json]:
    """All ports of a device, the bond first."""
    return [document(account, Port(device, name)) for name in NAMES]


def document(account: Account, port: Port) -> Json:
    """A port. Only bond ports have a network type, only interfaces a MAC and, while they are in it, a bond."""
    device, name = port.device, port.name
    assigned = models.assignments_of(account, device, name)
    bonded = models.is_bonded(account, port)
    shown: Json = {
        "id": port.id,
        "href": f"{BASE}/ports/{port.id}",
        "name": name,
        "type": "NetworkBondPort" if port.is_bond else "NetworkPort",
        "disbond_operation_supported": True,
        "virtual_networks": [link("virtual-networks", entry.network_id) for entry in assigned],
        "data": {"bonded": bonded},
    }
    native = next((entry.network_id for entry in assigned if entry.native), None)
    if native is not None:
        shown["native_virtual_network"] = link("virtual-networks", native)
    if port.is_bond:
        shown["network_type"] = models.network_type(account, device)
    else:
        shown["data"]["mac"] = interfaces(device)[name]
        if bonded:
            shown["bond"] = {"id": port_id(device.id, BOND), "name": BOND}
    return shown


def assignment_document(account: Account, entry: VlanAssignment) -> Json:
    """A VLAN on a port."""
    return {
        "id": entry.id,
        "native": entry.native,
        "state": "assigned",
        "vlan": account.table(VirtualNetwork)[entry.network_id].vxlan,
        "port": link("ports", port_id(entry.device_id, entry.port)),
        "virtual_network": link("virtual-networks", entry.network_id),
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    }


def batch_document(entry: VlanBatch) -> Json:
    """A batch; the ids in it are the VLANs', as packngo says."""
    return {
        "id": entry.id,
        "state": entry.state,
        "quantity": len(entry.wanted),
        "error_messages": entry.error_messages,
        "vlan_assignments": [
            {"id": wanted.network_id, "vlan": wanted.vlan, "state": wanted.state, "native": wanted.native}
            for wanted in entry.wanted
        ],
        "port": link("ports", entry.port_id),
        "project": link("projects", entry.project_id),
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    }
