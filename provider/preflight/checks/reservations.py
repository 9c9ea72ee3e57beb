"""Preflight check: are the reserved servers there, free, in the right place and of the ordered plan?

A server that is still being cleared after its previous use is free in some minutes, so that is only a warning.
"""

from __future__ import annotations

from collections import Counter

from metal_ipi.provider.orders import NEXT_AVAILABLE, MachineOrder
from metal_ipi.provider.platforms.contract import LEAVING
from metal_ipi.provider.platforms.equinix_metal.documents import id_of
from metal_ipi.provider.preflight.account import Document
from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "reservations"
_REMEDY = "see `metal hardware-reservation get`, and correct platform.reservations"
_WAIT = "wait until it is provisionable (`metal hardware-reservation get`), some minutes, and run the command again"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per reservation that cannot be used."""
    orders = [(order, names) for order, names in await subject.missing() if order.reservations]
    if not orders:
        return []
    metro = await subject.metal.metro_of(subject.orders.metro, subject.orders.facilities)
    there = {str(each["id"]): each for each in await subject.metal.reservations()}
    problems: list[Finding] = []
    any_wanted: Counter[str] = Counter()
    for order, names in orders:
        if order.reservations == (NEXT_AVAILABLE,):
            any_wanted[order.plan] += len(names)
            continue
        for number, hostname in enumerate(order.hostnames):
            id = order.reservations[number] if number < len(order.reservations) else None
            if hostname not in names:
                continue
            if why := _unfit(id, there, order, metro):
                problems.append(error(f"{hostname}: {why}", _REMEDY))
            elif id is not None and _is_being_cleared(there[id]):
                problems.append(
                    warning(f"{hostname}: reservation {id} is still being cleared of another machine", _WAIT)
                )
    # A reservation that an order names is not available for `next-available`.
    taken = {id for order, _ in orders for id in order.reservations}
    for plan, count in any_wanted.items():
        fit = [each for id, each in there.items() if id not in taken and not _unusable(each, plan, metro)]
        free = [each for each in fit if not _is_being_cleared(each)]
        what = f"{count} x {plan} are wanted from reservations (next-available), and {len(free)} are free there"
        if len(free) < count <= len(fit):
            problems.append(warning(f"{what}; {len(fit) - len(free)} are still being cleared", _WAIT))
        elif len(fit) < count:
            problems.append(error(what, "reserve more, free some, or order on demand: remove platform.reservations"))
    return problems or [ok(f"{sum(len(names) for _, names in orders)} reserved servers are free")]


def _unfit(id: str | None, there: dict[str, Document], order: MachineOrder, metro: str | None) -> str:
    """Why a machine cannot be ordered on a reservation; empty if it can."""
    if id is None:
        return "there is no reservation of its number"
    if id not in there:
        return f"the project has no reservation {id}"
    why = _unusable(there[id], order.plan, metro)
    return f"reservation {id} {why}" if why else ""


def _unusable(reservation: Document, plan: str, metro: str | None) -> str:
    if reservation.get("spare") or reservation.get("need_of_service"):
        return "cannot be provisioned: it is a spare, or in service"
    if reservation.get("device") and not _is_being_cleared(reservation):
        return f"is in use by device {id_of(reservation['device'])}"
    slug = (reservation.get("plan") or {}).get("slug")
    if slug not in (None, plan):
        return f"is a {slug}, and {plan} is ordered"
    place = ((reservation.get("facility") or {}).get("metro") or {}).get("code")
    return f"is in {place}, not in {metro}" if metro and place not in (None, metro) else ""


def _is_being_cleared(reservation: Document) -> bool:
    """Whether the previous machine of the reservation is being removed, or was removed but the server cannot be
    provisioned yet. Callers exclude spare servers and those in service first."""
    device = reservation.get("device")
    return device.get("state") in LEAVING if device else reservation.get("provisionable") is False
