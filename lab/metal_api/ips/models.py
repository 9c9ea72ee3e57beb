"""Elastic addresses: blocks that a project reserves, and parts of them that are assigned to devices.

The API's own words for what it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.body import Body
from lab.metal_api.devices.models import GONE, Device
from lab.metal_api.devices.network import has_addresses
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.ips.addresses import reserve as allocate
from lab.metal_api.places import place
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

_OTHER_TYPES = ("global_ipv4", "private_ipv4", "public_ipv6", "vrf")


@saved("reservations", indexed=("project_id",))
@dataclass(kw_only=True)
class Reservation(Record):
    """A block of elastic addresses that belongs to a project until it is released."""

    id: str
    project_id: str
    network: str
    """In CIDR notation."""
    metro: str
    facility: str | None
    """Only of a block that was asked for in a facility."""
    created_at: str
    type: str = "public_ipv4"
    """Or private_ipv4, of a block that was made for a metal gateway and goes with it."""
    gateway_id: str | None = None
    """The metal gateway that has it for itself."""
    details: str | None = None
    tags: list[str] = field(default_factory=list[str])
    customdata: Json = field(default_factory=dict[str, Any])


@saved("assignments", indexed=("device_id", "reservation_id"))
@dataclass(kw_only=True)
class Assignment(Record):
    """A part of a reservation that is routed to one device."""

    id: str
    project_id: str
    reservation_id: str
    device_id: str
    network: str
    """In CIDR notation."""
    created_at: str
    details: str | None = None
    tags: list[str] = field(default_factory=list[str])
    customdata: Json = field(default_factory=dict[str, Any])


def project_blocks(account: Account, project_id: str) -> list[Reservation]:
    """A project's blocks, in the order in which they were reserved."""
    return account.table(Reservation).where("project_id", project_id)


def public_blocks(account: Account, project_id: str) -> list[Reservation]:
    """Those of a project's blocks that can be routed to its devices."""
    return [block for block in project_blocks(account, project_id) if block.type == "public_ipv4"]


def assigned_to(account: Account, device_id: str) -> list[Assignment]:
    """What is assigned to a device."""
    return account.table(Assignment).where("device_id", device_id)


def assigned_from(account: Account, reservation_id: str) -> list[Assignment]:
    """What is assigned out of a block."""
    return account.table(Assignment).where("reservation_id", reservation_id)


def reserve(account: Account, project_id: str, document: Json) -> Reservation:
    """A new block of public IPv4 addresses. Reports every problem at once."""
    body = Body(document)
    kind = body.text("type", required=True)
    if kind in _OTHER_TYPES:
        raise NotImplementedInLab(f"reservations of type {kind}")
    if kind and kind != "public_ipv4":
        body.problems.append("Type is not included in the list")
    quantity = _quantity(body)
    metro, facility = place(body)
    settings = _settings(body)
    body.text("comments")
    body.flag("fail_on_approval_required")
    body.check()
    network = allocate((block.network for block in account.table(Reservation).values()), quantity)
    block = account.table(Reservation).add(
        Reservation(
            id=account.chance.uuid(),
            project_id=project_id,
            network=str(network),
            metro=metro,
            facility=facility,
            created_at=account.now(),
            **settings,
        )
    )
    account.routes_changed()
    return block


def release(account: Account, block: Reservation) -> None:
    """Give a block back; refused while devices use addresses of it."""
    if assigned_from(account, block.id):
        raise Unprocessable("Cannot delete an IP reservation with assigned addresses. Please unassign them first.")
    if block.gateway_id is not None:
        raise Unprocessable("Cannot delete an IP reservation with a metal gateway. Please delete that first.")
    del account.table(Reservation)[block.id]
    account.routes_changed()


def assign(account: Account, device: Device, document: Json) -> Assignment:
    """Route an address, or a part of a block, to a device of the same project and metro."""
    body = Body(document)
    if device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")
    if not has_addresses(account, device, public=True):
        raise Unprocessable("Device has no layer 3 network")
    address, settings = body.text("address", required=True), _settings(body)
    body.check()
    try:
        network = ipaddress.IPv4Network(address or "")
    except ValueError as error:
        raise Unprocessable(f"Address is invalid: {error}") from None
    block = _block_around(account, device.project_id, network)
    if block.metro != device.metro:
        raise Unprocessable(f"{network} is reserved in {block.metro}, not in {device.metro}")
    if block.gateway_id is not None:
        raise Unprocessable(f"{network} is in the block of a metal gateway")
    if any(network.overlaps(ipaddress.IPv4Network(entry.network)) for entry in assigned_from(account, block.id)):
        raise Unprocessable(f"{network} is already assigned")
    assignment = account.table(Assignment).add(
        Assignment(
            id=account.chance.uuid(),
            project_id=device.project_id,
            device_id=device.id,
            reservation_id=block.id,
            network=str(network),
            created_at=account.now(),
            **settings,
        )
    )
    account.routes_changed()
    return assignment


def unassign(account: Account, assignment: Assignment) -> None:
    """The address is free again for other devices."""
    del account.table(Assignment)[assignment.id]
    account.routes_changed()


def unassign_all(account: Account, device: Device) -> None:
    """None of a device's elastic addresses is routed to it any more."""
    for entry in assigned_to(account, device.id):
        del account.table(Assignment)[entry.id]
    account.routes_changed()


def update(record: Reservation | Assignment, document: Json) -> None:
    """Change details, tags or customdata; other fields are ignored, as the real API does."""
    body = Body(document)
    settings = _settings(body)
    body.check()
    for name, value in settings.items():
        setattr(record, name, value)


def find(account: Account, identity: str) -> Reservation | Assignment:
    """A block or an assignment by id, or NotFound: the API has one path for both."""
    return account.table(Assignment).get(identity) or account.table(Reservation).find(identity)


def _block_around(account: Account, project_id: str, network: ipaddress.IPv4Network) -> Reservation:
    for block in public_blocks(account, project_id):
        if network.subnet_of(ipaddress.IPv4Network(block.network)):
            return block
    raise Unprocessable(f"{network} is not in an IP reservation of this project")


def _quantity(body: Body) -> int:
    """A block has 1, 2, 4, ... addresses."""
    value = body.document.get("quantity")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value & (value - 1):
        body.problems.append("Quantity must be a power of 2")
        return 1
    return value


def _settings(body: Body) -> dict[str, Any]:
    """The fields that can also be changed later, where they are given."""
    settings: dict[str, Any] = {"tags": body.texts("tags"), "customdata": body.mapping("customdata")}
    settings = {name: value for name, value in settings.items() if value is not None}
    if "details" in body.document:
        settings["details"] = body.text("details") or None
    return settings
