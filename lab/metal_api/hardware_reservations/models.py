"""Servers that were sold to a project for a time: orders can name one, or ask for the next that is free.

It is sales that makes them for real; in the lab a control route does. The API's own words for what it refuses here are
not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import FACILITIES, PLANS, named, stable_id
from lab.metal_api.devices.models import Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.sources import timestamp
from lab.metal_api.state import Account

NEXT = "next-available"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@saved("hardware_reservations", indexed=("project_id",))
@dataclass(kw_only=True)
class HardwareReservation(Record):
    """One server of a plan in a facility."""

    id: str
    project_id: str
    plan: str
    facility: str
    created_at: str
    spare: bool = False
    """It stands in for another one that needs service. In the lab nothing activates it."""
    need_of_service: bool = False
    custom_rate: float | None = None
    """Price per billing cycle."""
    termination_time: str | None = None

    @property
    def switch(self) -> str:
        """The short id of the switch it is at: every server of a facility is at the same."""
        return stable_id("switch", self.facility)[:8]


def reservations_of(account: Account, project_id: str) -> list[HardwareReservation]:
    """A project's reservations, oldest first."""
    return account.table(HardwareReservation).where("project_id", project_id)


def device_on(account: Account, reservation: HardwareReservation) -> Device | None:
    """The device that has the server; it has it until its deprovisioning has ended."""
    return next(iter(account.table(Device).where("hardware_reservation_id", reservation.id)), None)


def is_provisionable(account: Account, reservation: HardwareReservation) -> bool:
    """Whether a device can be ordered on it now."""
    return not (reservation.spare or reservation.need_of_service or device_on(account, reservation))


def state_of(reservation: HardwareReservation) -> str:
    """The word that lists are filtered by."""
    if reservation.need_of_service:
        return "need_of_service"
    return "spare" if reservation.spare else "active"


def create(account: Account, project_id: str, document: Json) -> list[HardwareReservation]:
    """What sales would make: `count` servers of a plan, in a facility, for a project.

    One may be given an `id`, so that orders can name it; what has that already is left as it is.
    """
    known = {
        "id",
        "project_id",
        "plan",
        "facility",
        "count",
        "spare",
        "need_of_service",
        "custom_rate",
        "termination_time",
    }
    body = Body(document)
    body.problems.extend(
        f"{name} is not known; known are {', '.join(sorted(known))}" for name in document.keys() - known
    )
    plan = body.choice("plan", PLANS, required=True) or ""
    facility = named(FACILITIES, body.text("facility", required=True))
    count, rate, end = body.integer("count", least=1), body.number("custom_rate"), body.moment("termination_time")
    spare, service = body.flag("spare"), body.flag("need_of_service")
    identity = body.text("id")
    if identity is not None and (count not in (None, 1) or not _UUID.fullmatch(identity)):
        body.problems.append("id must be the UUID of one reservation")
    if facility is None:
        body.problems.append(f"{document.get('facility')} is not a valid facility")
    body.check()
    if identity is not None and (there := account.table(HardwareReservation).get(identity)):
        return [there]
    return [
        account.table(HardwareReservation).add(
            HardwareReservation(
                id=identity or account.chance.uuid(),
                project_id=project_id,
                plan=plan,
                facility=facility.code if facility else "",
                created_at=account.now(),
                spare=bool(spare),
                need_of_service=bool(service),
                custom_rate=rate,
                termination_time=timestamp(end) if end else None,
            )
        )
        for _ in range(count or 1)
    ]


def remove(account: Account, reservation: HardwareReservation) -> None:
    """The contract has ended."""
    if device_on(account, reservation):
        raise Unprocessable(f"Hardware reservation {reservation.id} has a device. Please delete it first.")
    del account.table(HardwareReservation)[reservation.id]


def choose(
    account: Account, project_id: str, wanted: str, *, plan: str, facilities: Collection[str]
) -> HardwareReservation:
    """The reservation for an order: the one named, or the first that is free; Unprocessable if it does not fit."""
    if wanted == NEXT:
        for reservation in reservations_of(account, project_id):
            fits = reservation.plan == plan and reservation.facility in facilities
            if fits and is_provisionable(account, reservation):
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
    if not is_provisionable(account, reservation):
        problems.append(f"Hardware reservation {wanted} is not provisionable")
    if problems:
        raise Unprocessable(*problems)
    return reservation
