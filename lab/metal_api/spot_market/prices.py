"""What a plan costs on the spot market of a facility: a fifth of its list price, until somebody sets another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import FACILITIES, PLANS, SPOT_MARKET, Facility, Metro, Plan, facilities_of
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.places import place
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

DISCOUNT = 0.2


@saved("spot_prices", indexed=("market",))
@dataclass(kw_only=True)
class SpotPrice(Record):
    """A change of a price. They are kept, for they are the price's history."""

    id: str
    facility: str
    plan: str
    price: float
    since: float
    """Seconds of the epoch."""

    @property
    def market(self) -> str:
        """What it is the price of."""
        return f"{self.facility}/{self.plan}"


def price(account: Account, facility: str, plan: str, *, at: float | None = None) -> float:
    """What a machine costs per hour, now or at a time."""
    changes = account.table(SpotPrice).where("market", f"{facility}/{plan}")
    valid = [change.price for change in changes if at is None or change.since <= at]
    return valid[-1] if valid else round(PLANS[plan].price_in(FACILITIES[facility].metro) * DISCOUNT, 2)


def prices(account: Account, places: Iterable[Facility | Metro], plan: str | None) -> Json:
    """By place and plan: the lowest price of a place's facilities. Plans that are not on the market have none."""
    found: Json = {}
    for where in places:
        facilities = facilities_of(where.code) if isinstance(where, Metro) else [where]
        plans = [each for each in PLANS.values() if plan in (None, each.slug) and is_on_market(each, facilities[0])]
        found[where.code] = {
            each.slug: {"price": min(price(account, facility.code, each.slug) for facility in facilities)}
            for each in plans
        }
    return found


def is_on_market(plan: Plan, facility: Facility) -> bool:
    """Whether a plan can be bid for in a facility."""
    return SPOT_MARKET in plan.deployment_types and plan.offered_in(facility.metro)


def change(account: Account, document: Json) -> list[SpotPrice]:
    """What the market would do: another price for a plan, in a facility or in all of a metro."""
    body = Body(document)
    metro, facility = place(body)
    plan, wanted = body.choice("plan", PLANS, required=True), body.number("price", least=0)
    if wanted is None:
        body.problems.append("Price can't be blank")
    body.check()
    return [
        account.table(SpotPrice).add(
            SpotPrice(
                id=account.chance.uuid(),
                facility=code,
                plan=plan or "",
                price=float(wanted or 0),
                since=account.clock.now().timestamp(),
            )
        )
        for code in ([facility] if facility else [each.code for each in facilities_of(metro)])
    ]


def check_bid(account: Account, facility: str, plan: str, bid: object) -> float:
    """The most that a spot device may cost, as a number; Unprocessable if it costs more already."""
    try:
        value = float(str(bid))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Unprocessable("Spot price max is not a number")
    current = price(account, facility, plan)
    if value < current:
        raise Unprocessable(f"Spot price max {value:g} is below the current price of {plan} in {facility}, {current:g}")
    return value
