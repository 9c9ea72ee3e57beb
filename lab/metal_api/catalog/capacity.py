"""How many servers of a plan a facility still has to give.

Nothing is counted until the lab is told to (`/lab/capacity`): a facility has as many as anybody wants of what its metro
offers. Once it is told a number, orders take from it, and give back when their devices are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import FACILITIES, METROS, PLANS, Facility, Plan, facilities_of, named
from lab.metal_api.devices.models import Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account


@saved("stock")
@dataclass(kw_only=True)
class Stock(Record):
    """What the lab was told of one plan in one facility; `id` is `<facility>/<plan>`."""

    id: str
    servers: int | None = None
    """All there are, given away or not; None: as many as anybody wants."""


def free(account: Account, facility: Facility, plan: Plan) -> float:
    """Servers that can still be ordered."""
    if not plan.offered_in(facility.metro):
        return 0
    stock = account.table(Stock).get(f"{facility.code}/{plan.slug}")
    if stock is None or stock.servers is None:
        return float("inf")
    return max(0, stock.servers - len(account.table(Device).where("stock", stock.id)))


def check(account: Account, document: Json, kind: str) -> list[Json]:
    """Whether there is enough for each of `servers`; `kind` says where: facility or metro.

    Quantities are texts in the description, numbers in packngo: each is answered as it was asked.
    """
    body = Body(document)
    wanted = body.objects("servers") or []
    answers: list[Json] = []
    for entry in wanted:
        place = named(FACILITIES, entry.get(kind)) if kind == "facility" else named(METROS, entry.get(kind))
        plan, quantity = named(PLANS, entry.get("plan")), str(entry.get("quantity", ""))
        if place is None:
            body.problems.append(f"{entry.get(kind)} is not a valid {kind}")
        if plan is None:
            body.problems.append(f"{entry.get('plan')} is not a valid plan")
        if not quantity.isascii() or not quantity.isdigit():
            body.problems.append("Quantity must be a number")
        if place is None or plan is None or body.problems:
            continue
        among = [place] if isinstance(place, Facility) else facilities_of(place.code)
        enough = sum(free(account, each, plan) for each in among) >= int(quantity)
        answers.append({kind: entry[kind], "plan": entry["plan"], "quantity": entry["quantity"], "available": enough})
    body.check()
    return answers


def choose(account: Account, facilities: Iterable[Facility], plan: Plan) -> Facility | None:
    """The first of some facilities that has a server of a plan; None where none has."""
    return next((each for each in facilities if free(account, each, plan) > 0), None)


def tell(account: Account, document: Json) -> list[Stock]:
    """Set what there is of plans in a facility or metro (each of its facilities): all plans where none is named."""
    body = Body(document)
    unknown = document.keys() - {"facility", "metro", "plan", "servers"}
    if unknown:
        body.problems.append(f"unknown keys: {', '.join(sorted(unknown))}")
    servers = body.integer("servers", least=0)
    facility, metro = named(FACILITIES, document.get("facility")), named(METROS, document.get("metro"))
    plan = named(PLANS, document.get("plan"))
    if (facility is None) == (metro is None):
        body.problems.append("one facility or one metro must be named, by its code")
    if plan is None and "plan" in document:
        body.problems.append(f"{document['plan']} is not a valid plan")
    body.check()
    places = [facility] if facility else facilities_of(metro.code if metro else "")
    return [
        account.table(Stock).add(Stock(id=f"{place.code}/{each.slug}", servers=servers))
        for place in places
        for each in ([plan] if plan else PLANS.values())
    ]


def refuse(plan: Plan, place: str) -> Unprocessable:
    """In Metal's words; `place` is `facility da11` or `metro da`."""
    return Unprocessable(f"The {place} has no provisionable {plan.slug} servers matching your criteria")
