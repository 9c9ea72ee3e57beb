"""The API's operations on addresses: devices' own, and blocks that projects reserve.

The API's own words for what it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from lab.metal_api.addresses import Reservation, blocks_of, elastic, network_of
from lab.metal_api.body import Mapping, problem
from lab.metal_api.catalog import FACILITIES, METROS, Place
from lab.metal_api.devices import BOND, Device, devices_of, port_id
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.listing import BASE, Listing, link
from lab.metal_api.offers import facility_document, metro_document
from lab.metal_api.operations import Call, links, operation
from lab.metal_api.records import Json
from lab.metal_api.state import Account

PER_PAGE = 250


def own_document(device: Device, index: int) -> Json:
    """One of the addresses that a device has by itself."""
    address, identity = device.addresses[index], device.address_ids[index]
    network = network_of(address)
    return {
        **_network(network),
        "id": identity,
        "href": f"{BASE}/ips/{identity}",
        "type": "IPAssignment",
        "address": address.address,
        "gateway": address.gateway,
        "public": address.public,
        "management": True,
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
        "parent_block": {
            "network": str(network.network_address),
            "netmask": str(network.netmask),
            "cidr": network.prefixlen,
            "href": f"{BASE}/ips/{device.block_ids[index]}",
        },
    }


def own_block_document(device: Device, index: int) -> Json:
    """The block behind such an address, as a project's list shows it."""
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


def block_document(block: Reservation) -> Json:
    """A block of elastic addresses, or one that was made for a metal gateway."""
    network, public = ipaddress.IPv4Network(block.network), block.type == "public_ipv4"
    return {
        **_network(network),
        "id": block.id,
        "href": f"{BASE}/ips/{block.id}",
        "type": block.type,
        "address": str(network.network_address),
        "gateway": str(network[0 if public else 1]),
        "public": public,
        "management": False,
        "addon": public,
        "bill": public,
        "state": "created",
        "tags": block.tags,
        "customdata": block.customdata,
        "details": block.details,
        "created_at": block.created_at,
        "metro": metro_document(METROS[block.metro]),
        "facility": facility_document(FACILITIES[block.facility]) if block.facility else None,
        "project": link("projects", block.project_id),
        "project_lite": link("projects", block.project_id),
        "assignments": [],
        "available": f"{BASE}/ips/{block.id}/available",
    }


def _network(network: ipaddress.IPv4Network) -> Json:
    return {
        "address_family": 4,
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "cidr": network.prefixlen,
        "manageable": True,
        "enabled": True,
        "global_ip": False,
    }


def _found(account: Account, identity: str) -> tuple[Device | Reservation, Json]:
    """The record that has an address or block of this id, and its document; NotFound if there is none."""
    for device in account.table(Device).where("address_ids", identity):
        return device, own_document(device, device.address_ids.index(identity))
    for device in account.table(Device).where("block_ids", identity):
        return device, own_block_document(device, device.block_ids.index(identity))
    block = account.table(Reservation).find(identity)
    return block, block_document(block)


links("ips", lambda account, identity: _found(account, identity)[1])


def _quantity(value: int) -> int:
    if value < 1 or value & (value - 1):
        raise problem("Quantity must be a power of 2")
    return value


class _NewBlock(Place):
    type: Literal["public_ipv4", "global_ipv4", "private_ipv4", "public_ipv6", "vrf"]
    quantity: Annotated[int, AfterValidator(_quantity)]
    details: str | None = None
    tags: list[str] | None = None
    customdata: Mapping | None = None
    comments: str | None = None
    fail_on_approval_required: bool | None = None


@operation("GET /projects/{id}/ips")
def list_blocks(call: Call) -> Listing:
    """All blocks of a project: those behind its devices' own addresses, and what was reserved."""
    project = call.project_id
    own: list[tuple[Device, int]] = [
        (device, index) for device in devices_of(call.account, project) for index in range(len(device.addresses))
    ]

    def shown(entry: Any) -> Json:
        return block_document(entry) if isinstance(entry, Reservation) else own_block_document(*entry)

    entries = [*own, *blocks_of(call.account, project)]
    return Listing(name="ip_addresses", entries=entries, shown=shown, per_page=PER_PAGE)


@operation("POST /projects/{id}/ips", status=201)
def reserve(call: Call) -> Json:
    """A new block of public IPv4 addresses."""
    project, account = call.project_id, call.account
    if call.body.get("type") == "vrf":
        raise NotImplementedInLab("reservations of type vrf")
    wanted = _NewBlock.of(call.body)
    if wanted.type != "public_ipv4":
        raise NotImplementedInLab(f"reservations of type {wanted.type}")
    metro, facility = wanted.codes
    block = account.make(
        Reservation,
        project_id=project,
        network=str(elastic(account, wanted.quantity)),
        metro=metro,
        facility=facility,
        **wanted.given("details", "tags", "customdata"),
    )
    account.routes_changed()
    return block_document(block)


@operation("GET /ips/{id}")
def show(call: Call) -> Json:
    return _found(call.account, call.id)[1]


@operation("DELETE /ips/{id}")
def release(call: Call) -> None:
    """Give a block back."""
    block = _found(call.account, call.id)[0]
    if not isinstance(block, Reservation):
        raise Unprocessable("Management addresses cannot be deleted: they go with their device")
    if block.type != "public_ipv4":
        raise Unprocessable("Cannot delete an IP reservation with a metal gateway. Please delete that first.")
    del call.account.table(Reservation)[block.id]
    call.account.routes_changed()
