"""Addresses as the API shows them."""

from __future__ import annotations

import ipaddress

from lab.machines.base import Address
from lab.metal_api.catalog.models import FACILITIES, METROS
from lab.metal_api.catalog.responses import facility_document, metro_document
from lab.metal_api.devices.models import Device
from lab.metal_api.devices.network import BOND, indexes, port_id
from lab.metal_api.ips.models import Assignment, Reservation, assigned_from, assigned_to
from lab.metal_api.listing import BASE, link
from lab.metal_api.records import Json
from lab.metal_api.state import Account


def network_of(address: Address) -> ipaddress.IPv4Network:
    """The /31 an address is in."""
    return ipaddress.IPv4Network(f"{address.address}/{address.prefix}", strict=False)


def own_document(device: Device, index: int) -> Json:
    """One assignment of a management address."""
    address, identity = device.addresses[index], device.address_ids[index]
    network = network_of(address)
    return {
        "id": identity,
        "href": f"{BASE}/ips/{identity}",
        "type": "IPAssignment",
        "address": address.address,
        "address_family": 4,
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "gateway": address.gateway,
        "cidr": address.prefix,
        "public": address.public,
        "management": True,
        "manageable": True,
        "enabled": True,
        "global_ip": False,
        "addon": False,
        "bill": False,
        "tags": [],
        "customdata": {},
        "created_at": device.created_at,
        "metro": metro_document(METROS[device.metro]),
        "project": link("projects", device.project_id),
        "project_lite": link("projects", device.project_id),
        "assigned_to": link("devices", device.id),
        "interface": link("ports", port_id(device.id, BOND)),
        "parent_block": _parent(network, device.block_ids[index]),
    }


def own_block_document(device: Device, index: int) -> Json:
    """The block behind such an assignment, as a project's address list shows it."""
    document = own_document(device, index)
    assignment, block = link("ips", document["id"]), document["parent_block"]
    document |= {
        "id": device.block_ids[index],
        "href": block["href"],
        "type": "public_ipv4" if document["public"] else "private_ipv4",
        "address": block["network"],
        "assignments": [assignment],
        "facility": facility_document(FACILITIES[device.facility]),
        "available": f"{block['href']}/available",
        "state": "created",
    }
    for name in ("assigned_to", "interface", "parent_block"):
        del document[name]
    return document


def assignment_document(account: Account, entry: Assignment) -> Json:
    """Elastic addresses of a device."""
    block = account.table(Reservation)[entry.reservation_id]
    return {
        **_elastic(entry.network),
        "id": entry.id,
        "href": f"{BASE}/ips/{entry.id}",
        "type": "IPAssignment",
        "tags": entry.tags,
        "customdata": entry.customdata,
        "details": entry.details,
        "created_at": entry.created_at,
        "metro": metro_document(METROS[block.metro]),
        "project": link("projects", block.project_id),
        "project_lite": link("projects", block.project_id),
        "assigned_to": link("devices", entry.device_id),
        "interface": link("ports", port_id(entry.device_id, BOND)),
        "parent_block": _parent(ipaddress.IPv4Network(block.network), block.id),
    }


def block_document(account: Account, block: Reservation) -> Json:
    """A block of elastic addresses, or one that was made for a metal gateway."""
    network, public = ipaddress.IPv4Network(block.network), block.type == "public_ipv4"
    return {
        **_elastic(block.network),
        "public": public,
        "gateway": str(network[1] if block.gateway_id else network[0]),
        "addon": public,
        "bill": public,
        "id": block.id,
        "href": f"{BASE}/ips/{block.id}",
        "type": block.type,
        "state": "created",
        "tags": block.tags,
        "customdata": block.customdata,
        "details": block.details,
        "created_at": block.created_at,
        "metro": metro_document(METROS[block.metro]),
        "facility": facility_document(FACILITIES[block.facility]) if block.facility else None,
        "project": link("projects", block.project_id),
        "project_lite": link("projects", block.project_id),
        "assignments": [link("ips", entry.id) for entry in assigned_from(account, block.id)],
        "available": f"{BASE}/ips/{block.id}/available",
    }


def device_addresses(account: Account, device: Device) -> list[Json]:
    """A device's own addresses, then the elastic ones that are assigned to it."""
    return [
        *(own_document(device, index) for index in indexes(account, device)),
        *(assignment_document(account, entry) for entry in assigned_to(account, device.id)),
    ]


def _parent(network: ipaddress.IPv4Network, identity: str) -> Json:
    return {
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "cidr": network.prefixlen,
        "href": f"{BASE}/ips/{identity}",
    }


def _elastic(text: str) -> Json:
    network = ipaddress.IPv4Network(text)
    return {
        "address": str(network.network_address),
        "address_family": 4,
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "gateway": str(network.network_address),
        "cidr": network.prefixlen,
        "public": True,
        "management": False,
        "manageable": True,
        "enabled": True,
        "global_ip": False,
        "addon": True,
        "bill": True,
    }
