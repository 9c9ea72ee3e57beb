"""How many servers of a plan a facility still has to give.

By default capacity is unlimited: a facility has any number of servers of the plans that its metro offers. Once a number
is set (`/lab/capacity`), orders reduce it, and deleted devices are added to it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

from lab.metal_api.body import ControlInput, Input, problem
from lab.metal_api.catalog import Facility, FacilityField, MetroField, Plan, PlanField, facilities_of
from lab.metal_api.devices import Device
from lab.metal_api.operations import Call, operation
from lab.metal_api.records import Json, Record, saved, to_json
from lab.metal_api.state import Account


@saved("stock")
@dataclass(kw_only=True)
class Stock(Record):
    """The capacity of one plan in one facility; `id` is `<facility>/<plan>`."""

    servers: int | None = None
    """The number of servers, whether in use or free; None: unlimited."""


def free(account: Account, facility: Facility, plan: Plan) -> float:
    """Servers that can still be ordered."""
    if not plan.offered_in(facility.metro):
        return 0
    stock = account.table(Stock).get(f"{facility.code}/{plan.slug}")
    if stock is None or stock.servers is None:
        return float("inf")
    return max(0, stock.servers - len(account.table(Device).where("stock", stock.id)))


def choose(account: Account, facilities: Iterable[Facility], plan: Plan) -> Facility | None:
    """The first of some facilities that has a server of a plan; None where none has."""
    return next((each for each in facilities if free(account, each, plan) > 0), None)


def _number(value: object) -> int:
    text = str(value)
    if not text.isascii() or not text.isdigit():
        raise problem("Quantity must be a number")
    return int(text)


class _Wanted(Input):
    plan: PlanField
    quantity: Annotated[int, BeforeValidator(_number)]


class _WantedInMetro(_Wanted):
    metro: MetroField


class _WantedInFacility(_Wanted):
    facility: FacilityField


class _InMetros(Input):
    servers: list[_WantedInMetro] = Field(default_factory=list[_WantedInMetro])


class _InFacilities(Input):
    servers: list[_WantedInFacility] = Field(default_factory=list[_WantedInFacility])


@operation("POST /capacity/metros")
def check_metros(call: Call) -> Json:
    """Whether there is enough for each of `servers`."""
    places = [(facilities_of(each.metro.code), each) for each in _InMetros.of(call.body).servers]
    return _checked(call, places)


@operation("POST /capacity")
def check_facilities(call: Call) -> Json:
    """The same, by facility."""
    return _checked(call, [([each.facility], each) for each in _InFacilities.of(call.body).servers])


def _checked(call: Call, wanted: Iterable[tuple[list[Facility], _Wanted]]) -> Json:
    """Quantities are texts in the description, numbers in packngo: each is answered as it was asked."""
    enough = [sum(free(call.account, each, one.plan) for each in among) >= one.quantity for among, one in wanted]
    asked: list[Json] = call.body.get("servers") or []
    return {"servers": [{**entry, "available": each} for entry, each in zip(asked, enough, strict=True)]}


class _Told(ControlInput):
    metro: MetroField
    plan: PlanField
    servers: Annotated[int, Field(ge=0)] | None = None


@operation("PUT /lab/capacity")
def tell(call: Call) -> Json:
    """Set the capacity of a plan in each facility of a metro."""
    told = _Told.of(call.body)
    stocks = [
        call.account.make(Stock, id=f"{place.code}/{told.plan.slug}", servers=told.servers)
        for place in facilities_of(told.metro.code)
    ]
    return {"capacity": [to_json(stock) for stock in stocks]}
