"""Spot market requests: machines as long as the market's price is not above a bid.

A request makes its devices as soon as the price allows, and again what was taken from it by a price that has fallen
since. A device that its user deletes is not replaced. Outbid, a device has two minutes left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lab.metal_api.body import Body
from lab.metal_api.catalog import capacity
from lab.metal_api.catalog.models import FACILITIES, METROS, PLANS, facilities_of, named
from lab.metal_api.devices import ordering
from lab.metal_api.devices.models import GONE, Device, add_event
from lab.metal_api.exceptions import told
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.sources import timestamp
from lab.metal_api.spot_market.prices import price
from lab.metal_api.state import Account

_ANYTHING = 1e9
"""A bid that is above every price."""
NOTICE = 120.0
"""Seconds that a device has left when it is outbid."""
AGAIN = 30.0
"""Seconds until a request is tried again after its order was refused for what no market changes."""


@saved("spot_market_requests", indexed=("project_id", "market", "ending"))
@dataclass(kw_only=True)
class SpotMarketRequest(Record):
    """A bid for some machines."""

    id: str
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
    created_at: str
    end_at: str | None = None
    owed: int = 0
    """How many devices it has not got yet."""
    refusal: str | None = None
    """Why its devices could not be ordered when there were servers at its price."""
    again_at: float = 0.0
    """When it is tried again after that, in seconds of the epoch."""

    @property
    def market(self) -> str | None:
        """What those have in common that wait for the same servers."""
        return f"{self.plan} {' '.join(self.facilities)}" if self.owed else None

    @property
    def ending(self) -> str | None:
        """What those have in common that end by themselves."""
        return "ending" if self.end_at else None

    def name(self, number: int) -> str | None:
        """The host name of one of its devices, several of one name being numbered; None if it has not said any."""
        names, one = self.parameters.get("hostnames"), self.parameters.get("hostname")
        if names:
            return names[number]
        return f"{one}-{number + 1}" if one and self.devices_max > 1 else one


def requests_of(account: Account, project_id: str) -> list[SpotMarketRequest]:
    """A project's requests, oldest first."""
    return account.table(SpotMarketRequest).where("project_id", project_id)


def devices_of(account: Account, request: SpotMarketRequest) -> list[Device]:
    """The devices a request has made that are still there."""
    return account.table(Device).where("spot_request_id", request.id)


def create(account: Account, project_id: str, document: Json) -> SpotMarketRequest:
    """A new request; that one of its devices could be ordered is checked at once, whatever it costs."""
    body = Body(document)
    least, most = body.integer("devices_min", least=1) or 1, body.integer("devices_max", least=1) or 1
    if most < least:
        body.problems.append("Devices max must be greater than or equal to devices min")
    bid, end = body.number("max_bid_price"), body.moment("end_at")
    if bid is None or bid <= 0:
        body.problems.append("Max bid price must be greater than 0")
    if end and end <= account.clock.now():
        body.problems.append("End at must be in the future")
    metro, facilities = _places(body)
    parameters = body.mapping("instance_parameters") or {}
    names = Body(parameters, body.problems).texts("hostnames")
    if not parameters:
        body.problems.append("Instance parameters can't be blank")
    elif names and len(names) < most:
        body.problems.append(f"Hostnames must be as many as devices max, {most}")
    body.check()
    request = SpotMarketRequest(
        id=account.chance.uuid(),
        project_id=project_id,
        devices_min=least,
        devices_max=most,
        max_bid_price=float(bid or 0),
        plan=str(parameters.get("plan")),
        metro=metro,
        facilities=facilities,
        parameters=parameters,
        created_at=account.now(),
        end_at=timestamp(end) if end else None,
        owed=most,
    )
    request.plan = ordering.order(account, project_id, _order(request, facilities, 0, bid=_ANYTHING)).plan
    return account.table(SpotMarketRequest).add(request)


def fill(account: Account, request: SpotMarketRequest) -> list[Device]:
    """Order what a request is owed if the price allows; all that `devices_min` asks for, or nothing. Returns them.

    What is in the way but for prices and servers is put on the project's timeline; it is tried again a little later.
    """
    if not request.owed or _has_ended(account, request) or request.again_at > account.clock.now().timestamp():
        return []
    servers = _servers(account, request)
    affordable = [code for code in servers if price(account, code, request.plan) <= request.max_bid_price]
    if sum(servers[code] for code in affordable) < max(1, _least(request)):
        return []
    try:
        return _fill(account, request, affordable)
    except Exception as error:  # whatever it is: who asks for something else now is not to hear of it
        _refuse(account, request, ", ".join(told(error)))
        return []


def _fill(account: Account, request: SpotMarketRequest, affordable: list[str]) -> list[Device]:
    taken = {device.hostname for device in devices_of(account, request)}
    free = [number for number in range(request.devices_max) if request.name(number) not in taken]
    made: list[Device] = []
    try:
        for number in free[: request.owed]:
            facility = next((code for code in affordable if _servers(account, request)[code]), None)
            if facility is None:
                break
            order = _order(request, [facility], number, bid=request.max_bid_price)
            device = ordering.order(account, request.project_id, order)
            device.spot_request_id = request.id
            made.append(account.table(Device).add(device))
    except Exception:
        for device in made:
            del account.table(Device)[device.id]
        raise
    request.owed -= len(made)
    request.refusal = None
    return made


def _least(request: SpotMarketRequest) -> int:
    """How many more devices it must get at once."""
    return request.devices_min - (request.devices_max - request.owed)


def _servers(account: Account, request: SpotMarketRequest) -> dict[str, float]:
    """How many servers there are for a request, by facility."""
    return {code: capacity.free(account, FACILITIES[code], PLANS[request.plan]) for code in request.facilities}


def _refuse(account: Account, request: SpotMarketRequest, reason: str) -> None:
    request.again_at = account.clock.now().timestamp() + AGAIN
    if reason != request.refusal:
        request.refusal = reason


def outbid(account: Account) -> None:
    """After a change of prices: give notice to the devices that pay less, and note what their requests have lost."""
    table = account.table(SpotMarketRequest)
    for device in account.table(Device).values():
        bid = device.spot_price_max
        if bid is None or device.state == GONE or price(account, device.facility, device.plan) <= bid:
            continue
        if device.termination_time and device.termination_time <= _end(account, NOTICE):
            continue
        evict(account, device)
        request = table.get(device.spot_request_id or "")
        if request is not None:
            request.owed += 1


def evict(account: Account, device: Device, *, seconds: float = NOTICE) -> None:
    """Give a device notice: it is deprovisioned when the time is over."""
    end = _end(account, seconds)
    device.termination_time = min(end, device.termination_time or end)
    add_event(account, device, "spot.termination", f"{device.hostname} will be terminated at {device.termination_time}")


def settle(account: Account) -> Iterator[Device]:
    """End the requests whose time has come, and yield the devices that others get now."""
    table = account.table(SpotMarketRequest)
    for request in table.where("ending", "ending"):
        if request.end_at and _has_ended(account, request):
            for device in devices_of(account, request):
                device.termination_time = min(request.end_at, device.termination_time or request.end_at)
    for market in table.keys_of("market"):
        waiting = table.where("market", market)
        lowest = _lowest(account, waiting[0])
        for request in waiting:
            if request.max_bid_price >= lowest:
                yield from fill(account, request)


def _lowest(account: Account, request: SpotMarketRequest) -> float:
    """The lowest price of the servers there are in a request's market; infinite where there are none."""
    servers = _servers(account, request)
    return min((price(account, code, request.plan) for code in servers if servers[code]), default=math.inf)


def _end(account: Account, seconds: float) -> str:
    return timestamp(account.clock.now() + timedelta(seconds=seconds))


def _has_ended(account: Account, request: SpotMarketRequest) -> bool:
    return request.end_at is not None and request.end_at <= account.now()


def _places(body: Body) -> tuple[str | None, list[str]]:
    """The metro, or None, and the facilities."""
    metro, wanted = body.text("metro"), body.texts("facilities") or []
    found = named(METROS, metro)
    if metro and wanted:
        body.problems.append("Cannot specify both metro and facilities")
    elif found:
        return found.code, [facility.code for facility in facilities_of(found.code)]
    elif not wanted:
        body.problems.append(f"{metro} is not a valid metro" if metro else "Metro can't be blank")
    there = {entry: named(FACILITIES, entry) for entry in wanted}
    body.problems.extend(f"{entry} is not a valid facility" for entry, facility in there.items() if facility is None)
    return None, [facility.code for facility in there.values() if facility]


def _order(request: SpotMarketRequest, facilities: list[str], number: int, *, bid: float) -> Json:
    """The order of one of a request's devices."""
    order = {key: value for key, value in request.parameters.items() if key not in ("hostname", "hostnames")}
    order |= {"hostname": request.name(number), "facility": facilities}
    return {**order, "spot_instance": True, "spot_price_max": bid}
