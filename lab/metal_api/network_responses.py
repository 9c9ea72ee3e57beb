"""A device's addresses and ports as the API's JSON."""

from __future__ import annotations

import ipaddress

from lab.machines.base import Address
from lab.metal_api.catalog import FACILITIES, METROS, stable_id
from lab.metal_api.models import Device, Json

BASE = "/metal/v1"


def network_of(address: Address) -> ipaddress.IPv4Network:
    """The /31 an address is in."""
    return ipaddress.IPv4Network(f"{address.address}/{address.prefix}", strict=False)


def address_document(device: Device, index: int) -> Json:
    """One assignment of a management address."""
    address, identity = device.addresses[index], device.address_ids[index]
    network = network_of(address)
    facility = FACILITIES[device.facility]
    block = stable_id("block", str(network))
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
        "metro": METROS[facility.metro].document(),
        "project": {"href": f"{BASE}/projects/{device.project_id}"},
        "project_lite": {"href": f"{BASE}/projects/{device.project_id}"},
        "assigned_to": {"href": f"{BASE}/devices/{device.id}"},
        "interface": {"href": f"{BASE}/ports/{stable_id('port', device.id + '/bond0')}"},
        "parent_block": {
            "network": str(network.network_address),
            "netmask": str(network.netmask),
            "cidr": address.prefix,
            "href": f"{BASE}/ips/{block}",
        },
    }


def reservation_document(device: Device, index: int) -> Json:
    """The block behind an assignment, as a project's address list shows it."""
    document = address_document(device, index)
    assignment = {"href": document["href"]}
    block = document["parent_block"]
    document |= {
        "id": str(block["href"]).rsplit("/", 1)[-1],
        "href": block["href"],
        "type": "public_ipv4" if document["public"] else "private_ipv4",
        "address": block["network"],
        "assignments": [assignment],
        "facility": FACILITIES[device.facility].document(),
        "available": "",
        "state": "created",
    }
    for name in ("assigned_to", "interface", "parent_block"):
        del document[name]
    return document


def ports(device: Device) -> list[Json]:
    """One bond of two interfaces, layer 3, as every Metal server starts."""

    def identity(name: str) -> str:
        return stable_id("port", f"{device.id}/{name}")

    bond = {"id": identity("bond0"), "name": "bond0"}
    common: Json = {"disbond_operation_supported": True, "virtual_networks": [], "native_virtual_network": None}
    result: list[Json] = [
        {
            "id": bond["id"],
            "href": f"{BASE}/ports/{bond['id']}",
            "name": "bond0",
            "type": "NetworkBondPort",
            "network_type": "layer3",
            "data": {"bonded": True},
            **common,
        }
    ]
    for name, mac in (("eth0", device.mac), ("eth1", second_mac(device.mac))):
        result.append(
            {
                "id": identity(name),
                "href": f"{BASE}/ports/{identity(name)}",
                "name": name,
                "type": "NetworkPort",
                "data": {"bonded": True, "mac": mac},
                "bond": bond,
                **common,
            }
        )
    return result


def second_mac(mac: str) -> str:
    """The MAC of the bond's other interface."""
    return "52:54:01" + mac[8:]
