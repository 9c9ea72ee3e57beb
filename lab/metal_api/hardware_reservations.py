"""Servers that were sold to a project for a time: orders can name one, or ask for the next that is free.

It is sales that makes them for real; in the lab a control route does. The API's own words for what it refuses here are
not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from lab.metal_api.body import ControlInput, problem
from lab.metal_api.catalog import FACILITIES, PLANS, FacilityField, PlanField, stable_id
from lab.metal_api.devices import Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.listing import PER_PAGE, link
from lab.metal_api.offers import facility_document, plan_document
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

NEXT = "next-available"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@saved("hardware_reservations", indexed=("project_id",))
@dataclass(kw_only=True)
class HardwareReservation(Record):
    """One server of a plan in a facility."""

    project_id: str
    plan: str
    facility: str


def device_on(account: Account, reservation: HardwareReservation) -> Device | None:
    """The device that has the server; it has it until its deprovisioning has ended."""
    return next(iter(account.table(Device).where("hardware_reservation_id", reservation.id)), None)


def switch(facility: str) -> str:
    """The short id of the switch that a server is at: every server of a facility is at the same."""
    return stable_id("switch", facility)[:8]


@shows("hardware-reservations", HardwareReservation, key="hardware_reservations", per_page=PER_PAGE)
def document(account: Account, reservation: HardwareReservation) -> Json:
    """A reservation; one without a device does not mention it."""
    device = device_on(account, reservation)
    return {
        "short_id": reservation.id[:8],
        "project": link("projects", reservation.project_id),
        "plan": plan_document(PLANS[reservation.plan]),
        "facility": facility_document(FACILITIES[reservation.facility]),
        "provisionable": device is None,
        "spare": False,
        "need_of_service": False,
        "switch_uuid": switch(reservation.facility),
    } | ({"device": link("devices", device.id)} if device else {})


def _uuid(text: str) -> str:
    if not _UUID.fullmatch(text):
        raise problem("id must be the UUID of one reservation")
    return text


class _Sale(ControlInput):
    plan: PlanField
    facility: FacilityField
    id: Annotated[str, AfterValidator(_uuid)] | None = None


@operation("POST /lab/hardware-reservations", status=201)
def sell_one(call: Call) -> Json:
    """What sales would make."""
    return document(call.account, sell(call.account, call.account.identity.project_id, call.body))


def sell(account: Account, project_id: str, wanted: Json) -> HardwareReservation:
    """A server of a plan, in a facility, for a project.

    It may be given an `id`, so that orders can name it; what has that already is left as it is.
    """
    sale = _Sale.of(wanted)
    found = account.table(HardwareReservation).get(sale.id or "")
    return found or account.make(
        HardwareReservation,
        project_id=project_id,
        plan=sale.plan.slug,
        facility=sale.facility.code,
        **sale.given("id"),
    )


def choose(
    account: Account, project_id: str, wanted: str, *, plan: str, facilities: Collection[str]
) -> HardwareReservation:
    """The reservation for an order: the one named, or the first that is free; Unprocessable if it does not fit."""
    if wanted == NEXT:
        for reservation in account.table(HardwareReservation).where("project_id", project_id):
            fits = reservation.plan == plan and reservation.facility in facilities
            if fits and device_on(account, reservation) is None:
                return reservation
        raise Unprocessable(f"No hardware reservation for {plan} is available in {', '.join(facilities)}")
    reservation = account.table(HardwareReservation).get(wanted)
    if reservation is None or reservation.project_id != project_id:
        raise Unprocessable(f"Hardware reservation {wanted} is not in this project")
    problems: list[str] = []
    if reservation.plan != plan:
        problems.append(f"Hardware reservation {wanted} is for {reservation.plan}, not for {plan}")
    if reservation.facility not in facilities:
        metro = FACILITIES[reservation.facility].metro
        problems.append(f"Hardware reservation {wanted} is in {reservation.facility} ({metro})")
    if device_on(account, reservation) is not None:
        problems.append(f"Hardware reservation {wanted} is not provisionable")
    if problems:
        raise Unprocessable(*problems)
    return reservation
