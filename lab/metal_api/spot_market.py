"""The spot market: prices, and requests for machines as long as the price is not above a bid.

A plan costs a fifth of its list price. A request makes its devices as soon as there are servers at its price. A device
that its user deletes, or that is evicted, is not replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, model_validator

from lab.metal_api import capacity, ordering
from lab.metal_api.body import ControlInput, Input, problem
from lab.metal_api.body import Mapping as MappingField
from lab.metal_api.catalog import (
    FACILITIES,
    METROS,
    PLANS,
    SPOT_MARKET,
    Facility,
    FacilityField,
    Metro,
    MetroField,
    Plan,
    facilities_of,
    named,
    stable_id,
)
from lab.metal_api.devices import GONE, Device, add_event
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable, error_texts
from lab.metal_api.listing import Listing, flag, head, included, link
from lab.metal_api.offers import facility_document, metro_document
from lab.metal_api.operations import Call, links, operation
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account, timestamp

Entry = TypeVar("Entry", Metro, Facility)
DISCOUNT = 0.2
NOTICE = 120.0
"""Seconds that a device has left when it is evicted."""
AGAIN = 30.0
"""Seconds until a request is tried again after its order was refused for something else than a lack of servers."""


@saved("spot_market_requests", indexed=("project_id", "waiting"))
@dataclass(kw_only=True)
class SpotMarketRequest(Record):
    """A bid for some machines."""

    project_id: str
    devices_min: int
    devices_max: int
    max_bid_price: float
    plan: str
    metro: str | None
    facilities: list[str]
    """Where its machines may be, in order of preference; all of the metro's if there is one."""
    parameters: Json = field(default_factory=dict[str, Any])
    """As of an order of a device."""
    owed: int = 0
    """How many devices it has not got yet."""
    refusal: str | None = None
    """Why its devices could not be ordered when there were servers at its price."""
    again_at: float = 0.0
    """When it is tried again after that, in seconds of the epoch."""

    @property
    def waiting(self) -> str | None:
        """The index of the requests that wait for servers."""
        return "waiting" if self.owed else None

    def name(self, number: int) -> str | None:
        """The host name of one of its devices, several being numbered; None if it has not said any."""
        name = self.parameters.get("hostname")
        return f"{name}-{number + 1}" if name and self.devices_max > 1 else name


def price(metro: str, plan: Plan) -> float:
    """What a machine costs per hour on the market."""
    return round(plan.price_in(metro) * DISCOUNT, 2)


def devices_of(account: Account, request: SpotMarketRequest) -> list[Device]:
    """The devices a request has made that are still there."""
    return account.table(Device).where("spot_request_id", request.id)


def fill(account: Account, request: SpotMarketRequest) -> list[Device]:
    """Order what a request is owed if the price allows; all that `devices_min` asks for, or nothing. Returns them."""
    now = account.seconds()
    if not request.owed or request.again_at > now:
        return []
    plan = PLANS[request.plan]
    affordable = [
        FACILITIES[code] for code in request.facilities if price(FACILITIES[code].metro, plan) <= request.max_bid_price
    ]
    least = request.devices_min - (request.devices_max - request.owed)
    if sum(capacity.free(account, facility, plan) for facility in affordable) < max(1, least):
        return []
    try:
        return _ordered(account, request, affordable)
    except Exception as error:  # whatever it is: who asks for something else now is not to hear of it
        request.again_at, request.refusal = now + AGAIN, ", ".join(error_texts(error))
        return []


def _ordered(account: Account, request: SpotMarketRequest, affordable: list[Facility]) -> list[Device]:
    taken = {device.hostname for device in devices_of(account, request)}
    free = [number for number in range(request.devices_max) if request.name(number) not in taken]
    made: list[Device] = []
    try:
        for number in free[: request.owed]:
            facility = capacity.choose(account, affordable, PLANS[request.plan])
            if facility is None:
                break
            order = {**_order(request, number), "facility": [facility.code]}
            device = ordering.order(account, request.project_id, order, bid=request.max_bid_price)
            device.spot_request_id = request.id
            made.append(account.table(Device).add(device))
    except Exception:
        for device in made:
            del account.table(Device)[device.id]
        raise
    request.owed -= len(made)
    request.refusal = None
    return made


def _order(request: SpotMarketRequest, number: int) -> Json:
    """The order of one of a request's devices."""
    return {**request.parameters, "hostname": request.name(number), "facility": request.facilities}


def settle(account: Account) -> Iterator[Device]:
    """Yield the devices that waiting requests get now."""
    for request in account.table(SpotMarketRequest).where("waiting", "waiting"):
        yield from fill(account, request)


def document(account: Account, request: SpotMarketRequest) -> Json:
    """A request. Its devices are a list called `devices`, as packngo has it; the description says `instances`."""
    shown: Json = head("spot-market-requests", request) | {
        "devices_min": request.devices_min,
        "devices_max": request.devices_max,
        "max_bid_price": request.max_bid_price,
        "project": link("projects", request.project_id),
        "plan": link("plans", stable_id("plan", request.plan)),
        "devices": [link("devices", device.id) for device in devices_of(account, request)],
    }
    if request.metro is not None:
        shown["metro"] = metro_document(METROS[request.metro])
    return shown


links("spot-market-requests", lambda account, id: document(account, account.table(SpotMarketRequest).find(id)))


def _shown(call: Call, request: SpotMarketRequest) -> Json:
    """With `facilities` only where these are included: packngo needs a list there, the description has a link."""
    shown = document(call.account, request)
    if "facilities" in included(call.query) and request.metro is None:
        shown["facilities"] = [facility_document(FACILITIES[code]) for code in request.facilities]
    return shown


@operation("GET /market/spot/prices")
def facility_prices(call: Call) -> Json:
    return _prices(call, "facility", FACILITIES, lambda facility: facility.metro)


@operation("GET /market/spot/prices/metros")
def metro_prices(call: Call) -> Json:
    return _prices(call, "metro", METROS, lambda metro: metro.code)


def _prices(call: Call, name: str, places: Mapping[str, Entry], metro_of: Callable[[Entry], str]) -> Json:
    """By place and plan. Plans that are not on the market have no price."""
    place, plan = call.query.get(name), call.query.get("plan")
    wanted = named(places, place)
    if place and wanted is None:
        raise Unprocessable(f"{place} is not a valid {name}")
    if plan and plan not in PLANS:
        raise Unprocessable(f"{plan} is not a valid plan")
    plans = [PLANS[plan]] if plan else [*PLANS.values()]
    return {
        "spot_market_prices": {
            where.code: {
                each.slug: {"price": price(metro_of(where), each)}
                for each in plans
                if SPOT_MARKET in each.deployment_types and each.offered_in(metro_of(where))
            }
            for where in ([wanted] if wanted else places.values())
        }
    }


class _NewRequest(Input):
    devices_min: Annotated[int, Field(ge=1)] = 1
    devices_max: Annotated[int, Field(ge=1)] = 1
    max_bid_price: Annotated[float, Field(gt=0)]
    metro: MetroField | None = None
    facilities: list[FacilityField] = Field(default_factory=list[Facility])
    instance_parameters: MappingField

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.devices_max < self.devices_min:
            raise problem("Devices max must be greater than or equal to devices min")
        if self.metro and self.facilities:
            raise problem("Cannot specify both metro and facilities")
        if not self.metro and not self.facilities:
            raise problem("Metro can't be blank")
        return self


@operation("GET /projects/{id}/spot-market-requests")
def list_requests(call: Call) -> Listing:
    found = call.account.table(SpotMarketRequest).where("project_id", call.project_id)
    return Listing(
        name="spot_market_requests", entries=found, shown=lambda request: _shown(call, request), per_page=None
    )


@operation("POST /projects/{id}/spot-market-requests", status=201)
def create(call: Call) -> Json:
    """That one of its devices could be ordered is checked at once, whatever it costs."""
    project, account = call.project_id, call.account
    if call.body.get("end_at"):
        raise NotImplementedInLab("spot market requests with an end")
    wanted = _NewRequest.of(call.body)
    if wanted.instance_parameters.get("hostnames"):
        raise NotImplementedInLab("spot market requests with several host names")
    facilities: Iterable[Facility] = wanted.facilities or facilities_of(wanted.metro.code if wanted.metro else "")
    request = SpotMarketRequest(
        id=account.chance.uuid(),
        project_id=project,
        devices_min=wanted.devices_min,
        devices_max=wanted.devices_max,
        max_bid_price=wanted.max_bid_price,
        plan="",
        metro=wanted.metro.code if wanted.metro else None,
        facilities=[facility.code for facility in facilities],
        parameters=wanted.instance_parameters,
        created_at=account.now(),
        owed=wanted.devices_max,
    )
    request.plan = ordering.order(account, project, _order(request, 0), bid=request.max_bid_price).plan
    account.table(SpotMarketRequest).add(request)
    for device in fill(account, request):
        call.lab.provisioner.provision(device)
    return _shown(call, request)


@operation("GET /spot-market-requests/{id}")
def show(call: Call) -> Json:
    return _shown(call, call.find(SpotMarketRequest))


@operation("DELETE /spot-market-requests/{id}")
def delete(call: Call) -> None:
    """packngo says in the body what the description has in the query."""
    request = call.find(SpotMarketRequest)
    devices = devices_of(call.account, request)
    del call.account.table(SpotMarketRequest)[request.id]
    if flag(call.query, "force_termination") or bool(call.body.get("force_termination")):
        for device in devices:
            call.lab.provisioner.deprovision(device)


class _Eviction(ControlInput):
    id: str
    seconds: Annotated[float, Field(ge=0)] = NOTICE


@operation("POST /lab/spot-evictions", status=202)
def evict(call: Call) -> Json:
    """What Metal would do when it needs a machine: take it away after some `seconds`."""
    eviction, account = _Eviction.of(call.body), call.account
    device = account.table(Device).get(eviction.id)
    if device is None or device.spot_price_max is None or device.state == GONE:
        raise Unprocessable(f"id: {eviction.id} is not a spot device")
    end = timestamp(account.clock.now() + timedelta(seconds=eviction.seconds))
    device.termination_time = min(end, device.termination_time or end)
    add_event(account, device, "spot.termination", f"{device.hostname} will be terminated at {device.termination_time}")
    return {"devices": [device.id]}
