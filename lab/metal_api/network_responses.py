"""Addresses, ports and BGP as the API's JSON."""

from __future__ import annotations

import ipaddress

from lab.machines.base import Address
from lab.metal_api.catalog import FACILITIES, METROS, stable_id
from lab.metal_api.elastic import assignments_of
from lab.metal_api.models import Assignment, BgpConfig, BgpSession, Device, Json, Reservation
from lab.metal_api.state import Account
from lab.network.bgp import Seen
from lab.network.plan import BGP_MAX_PREFIX, BGP_PEERS

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


def assignment_document(account: Account, entry: Assignment) -> Json:
    """Elastic addresses of a device."""
    block = account.reservations[entry.reservation_id]
    network = ipaddress.IPv4Network(block.network)
    return {
        **_elastic(entry.network),
        "id": entry.id,
        "href": f"{BASE}/ips/{entry.id}",
        "type": "IPAssignment",
        "tags": entry.tags,
        "customdata": entry.customdata,
        "details": entry.details,
        "created_at": entry.created_at,
        "metro": METROS[block.metro].document(),
        "project": {"href": f"{BASE}/projects/{block.project_id}"},
        "project_lite": {"href": f"{BASE}/projects/{block.project_id}"},
        "assigned_to": {"href": f"{BASE}/devices/{entry.device_id}"},
        "interface": {"href": f"{BASE}/ports/{stable_id('port', entry.device_id + '/bond0')}"},
        "parent_block": {
            "network": str(network.network_address),
            "netmask": str(network.netmask),
            "cidr": network.prefixlen,
            "href": f"{BASE}/ips/{block.id}",
        },
    }


def block_document(account: Account, block: Reservation) -> Json:
    """A block of elastic addresses; references are links, which `network_views` expands."""
    return {
        **_elastic(block.network),
        "id": block.id,
        "href": f"{BASE}/ips/{block.id}",
        "type": "public_ipv4",
        "state": "created",
        "tags": block.tags,
        "customdata": block.customdata,
        "details": block.details,
        "created_at": block.created_at,
        "metro": METROS[block.metro].document(),
        "facility": FACILITIES[block.facility].document() if block.facility else None,
        "project": {"href": f"{BASE}/projects/{block.project_id}"},
        "project_lite": {"href": f"{BASE}/projects/{block.project_id}"},
        "assignments": [{"href": f"{BASE}/ips/{entry.id}"} for entry in assignments_of(account, block)],
        "available": f"{BASE}/ips/{block.id}/available",
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


def config_document(config: BgpConfig, sessions: list[Json]) -> Json:
    """A project's BGP configuration."""
    project = {"href": f"{BASE}/projects/{config.project_id}"}
    return {
        "id": config.id,
        "href": f"{BASE}/bgp-configs/{config.id}",
        "status": "enabled",
        "deployment_type": config.deployment_type,
        "asn": config.asn,
        "md5": config.md5,
        "max_prefix": BGP_MAX_PREFIX,
        "route_object": None,
        "ranges": [],
        "sessions": sessions,
        "project": project,
        "created_at": config.created_at,
        "requested_at": config.created_at,
    }


def session_document(session: BgpSession, seen: Seen | None) -> Json:
    """A BGP session as the facility's routers see it, `unknown` while they do not."""
    return {
        "id": session.id,
        "href": f"{BASE}/bgp/sessions/{session.id}",
        "address_family": session.address_family,
        "default_route": session.default_route,
        "device": {"href": f"{BASE}/devices/{session.device_id}"},
        "learned_routes": list(seen.learned) if seen else [],
        "status": ",".join(seen.states if seen else ["unknown"] * len(BGP_PEERS)),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }


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
