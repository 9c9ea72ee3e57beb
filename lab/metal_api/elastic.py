"""Elastic addresses: blocks that a project reserves, and parts of them that are assigned to devices.

The API's own words for what it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from lab.metal_api.addresses import reserve as allocate
from lab.metal_api.catalog import FACILITIES, METROS
from lab.metal_api.exceptions import NotFound, NotImplementedInLab, Unprocessable
from lab.metal_api.models import Assignment, Device, Json, Reservation
from lab.metal_api.ordering import customdata, tag_list
from lab.metal_api.state import GONE, Account

_OTHER_TYPES = ("global_ipv4", "private_ipv4", "public_ipv6", "vrf")


def project_blocks(account: Account, project_id: str) -> list[Reservation]:
    """A project's blocks, in the order in which they were reserved."""
    return [block for block in account.reservations.values() if block.project_id == project_id]


def assignments_of(account: Account, record: Device | Reservation) -> list[Assignment]:
    """What is assigned to a device, or out of a block."""
    return [entry for entry in account.assignments.values() if record.id in (entry.device_id, entry.reservation_id)]


def reserve(account: Account, project_id: str, body: Json) -> Reservation:
    """A new block of public IPv4 addresses. Reports every problem at once."""
    account.project(project_id)
    kind, problems = body.get("type"), list[str]()
    if kind in _OTHER_TYPES:
        raise NotImplementedInLab(f"reservations of type {kind}")
    if kind != "public_ipv4":
        problems.append("Type is not included in the list")
    quantity = _quantity(body.get("quantity"), problems)
    metro, facility = _place(body, problems)
    settings = _settings(body, problems)
    if problems:
        raise Unprocessable(*problems)
    network = allocate([ipaddress.IPv4Network(block.network) for block in account.reservations.values()], quantity)
    block = Reservation(
        id=account.chance.uuid(),
        project_id=project_id,
        network=str(network),
        metro=metro,
        facility=facility,
        created_at=account.now(),
        **settings,
    )
    account.reservations[block.id] = block
    account.routes_changed()
    return block


def release(account: Account, block: Reservation) -> None:
    """Give a block back; refused while devices use addresses of it."""
    if assignments_of(account, block):
        raise Unprocessable("Cannot delete an IP reservation with assigned addresses. Please unassign them first.")
    del account.reservations[block.id]
    account.routes_changed()


def assign(account: Account, device: Device, body: Json) -> Assignment:
    """Route an address, or a part of a block, to a device of the same project and metro."""
    try:
        network = ipaddress.IPv4Network(str(body.get("address", "")))
    except ValueError as error:
        raise Unprocessable(f"Address is invalid: {error}") from None
    if device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")
    problems: list[str] = []
    data = customdata(body["customdata"], problems) if body.get("customdata") else {}
    if problems:
        raise Unprocessable(*problems)
    block = _block_around(account, device.project_id, network)
    if block.metro != FACILITIES[device.facility].metro:
        raise Unprocessable(f"{network} is reserved in {block.metro}, the device is elsewhere")
    if any(network.overlaps(ipaddress.IPv4Network(entry.network)) for entry in account.assignments.values()):
        raise Unprocessable(f"{network} is already assigned")
    assignment = Assignment(
        id=account.chance.uuid(),
        reservation_id=block.id,
        device_id=device.id,
        network=str(network),
        created_at=account.now(),
        customdata=data,
    )
    account.assignments[assignment.id] = assignment
    account.routes_changed()
    return assignment


def unassign(account: Account, assignment: Assignment) -> None:
    """The address is free again for other devices."""
    del account.assignments[assignment.id]
    account.routes_changed()


def update(account: Account, record: Reservation | Assignment, body: Json) -> None:
    """Change details, tags or customdata; other fields are ignored, as the real API does."""
    problems: list[str] = []
    settings = _settings(body, problems)
    if problems:
        raise Unprocessable(*problems)
    for name, value in settings.items():
        setattr(record, name, value)
    account.changed()


def find(account: Account, identity: str) -> Reservation | Assignment:
    """A block or an assignment by id, or NotFound: the API has one path for both."""
    record = account.reservations.get(identity) or account.assignments.get(identity)
    if record is None:
        raise NotFound
    return record


def _block_around(account: Account, project_id: str, network: ipaddress.IPv4Network) -> Reservation:
    for block in project_blocks(account, project_id):
        if network.subnet_of(ipaddress.IPv4Network(block.network)):
            return block
    raise Unprocessable(f"{network} is not in an IP reservation of this project")


def _quantity(value: object, problems: list[str]) -> int:
    """A block has 1, 2, 4, ... addresses."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value & (value - 1):
        problems.append("Quantity must be a power of 2")
        return 1
    return value


def _place(body: Json, problems: list[str]) -> tuple[str, str | None]:
    """Metro, and facility if that was asked for."""
    metro, facility = str(body.get("metro") or "").lower(), body.get("facility")
    if metro and facility:
        problems.append("Cannot specify both metro and facility")
    elif facility:
        if facility in FACILITIES:
            return FACILITIES[str(facility)].metro, str(facility)
        problems.append(f"{facility} is not a valid facility")
    elif not metro:
        problems.append("Metro can't be blank")
    elif metro not in METROS:
        problems.append(f"{metro} is not a valid metro")
    return metro, None


def _settings(body: Json, problems: list[str]) -> dict[str, Any]:
    """The fields that can also be changed later."""
    settings: dict[str, Any] = {}
    if "details" in body:
        if not isinstance(body["details"], (str, type(None))):
            problems.append("Details must be a string")
        settings["details"] = body["details"] or None
    if body.get("tags") is not None:
        settings["tags"] = tag_list(body["tags"], problems)
    if body.get("customdata") is not None:
        settings["customdata"] = customdata(body["customdata"] or {}, problems)
    return settings
