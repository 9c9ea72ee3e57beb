"""Orders and prices → cost per hour and per month. Pure functions.

Money is rounded only for display. A month has 730 hours, as in Metal's own estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.cost.prices import PriceList
from metal_ipi.provider.orders import BOOTSTRAP, AddressOrder, MachineOrder, NetworkOrder, Orders

_HOURS_PER_MONTH = 730
_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the bill."""

    what: str
    """A description for people: `3 control-plane machines`."""
    kind: str
    """`machine`, `spot`, `reserved`, `address` or `gateway`."""
    plan: str
    """The plan; for addresses `public_ipv4`, for gateways `gateway`."""
    count: int
    each: float | None
    """USD per hour for one item. None: unknown."""
    lasting: bool = True
    """False: paid only while the cluster is installed."""
    at_most: float | None = None
    """The highest price on the spot market, in USD per hour for one item. None: the price is fixed."""
    note: str = ""

    @property
    def hourly(self) -> float | None:
        """USD per hour for all items."""
        return None if self.each is None else self.each * self.count


def lines(orders: Orders, prices: PriceList) -> list[Line]:
    """The lines: one for each order, and one for the subnets of each order's machines."""
    return [
        *(_machines(order, prices) for order in orders.machines if order.count),
        *(_subnets(order, prices) for order in orders.machines if order.count and order.further_addresses),
        *(_address(order, prices) for order in orders.addresses),
        *(_gateway(order, prices) for order in orders.networks if order.gateway_size is not None),
    ]


def _machines(order: MachineOrder, prices: PriceList) -> Line:
    what = f"{order.count} {order.role} machine{'' if order.count == 1 else 's'}"
    lasting = order.role != BOOTSTRAP
    common: dict[str, Any] = {"what": what, "plan": order.plan, "count": order.count, "lasting": lasting}
    if order.reservations:
        return Line(**common, kind="reserved", each=0, note="reserved servers, which are paid for already")
    if order.spot_max_price is not None:
        price = prices.spot.get(order.plan)
        note = "spot market, currently without a price: the bid" if price is None else "spot market, current price"
        each = order.spot_max_price if price is None else price
        return Line(**common, kind="spot", each=each, at_most=order.spot_max_price, note=note)
    return Line(**common, kind="machine", **_priced(prices.plans.get(order.plan)))


def _subnets(order: MachineOrder, prices: PriceList) -> Line:
    many = f"{order.count} public subnet{'' if order.count == 1 else 's'}"
    return Line(
        what=f"{many} /{order.subnet_length} ({order.role})",
        kind="address",
        plan="public_ipv4",
        count=order.count * order.further_addresses,
        lasting=order.role != BOOTSTRAP,
        **_priced(prices.address),
    )


def _address(order: AddressOrder, prices: PriceList) -> Line:
    return Line(
        what=f"{order.quantity} reserved address{'' if order.quantity == 1 else 'es'} ({order.name})",
        kind="address",
        plan="public_ipv4",
        count=order.quantity,
        **_priced(prices.address),
    )


def _gateway(order: NetworkOrder, prices: PriceList) -> Line:
    what = f"1 gateway with {order.gateway_size} private addresses ({order.name})"
    return Line(what=what, kind="gateway", plan="gateway", count=1, **_priced(prices.gateway))


def _priced(each: float | None) -> dict[str, Any]:
    return {"each": each, "note": "" if each is not None else "no price in the list"}


def summary(found: list[Line], prices: PriceList) -> dict[str, Any]:
    """The stack's output `cost`. Unknown prices are listed, and not part of totals."""
    lasting = [line for line in found if line.lasting]
    hourly = _total(lasting)
    at_most = sum((line.at_most or line.each or 0) * line.count for line in lasting)
    ceiling = {"hourlyAtMost": _rounded(at_most)} if any(line.at_most is not None for line in lasting) else {}
    return {
        "currency": "USD",
        "hourly": _rounded(hourly),
        **ceiling,
        "monthly": _rounded(hourly * _HOURS_PER_MONTH),
        "hoursPerMonth": _HOURS_PER_MONTH,
        "installing": _rounded(_total(found)),
        "unknown": [line.what for line in found if line.each is None],
        "source": prices.source,
        "lines": [_line(line) for line in found],
    }


def _total(found: list[Line]) -> float:
    return sum(line.hourly or 0 for line in found)


def _line(line: Line) -> dict[str, Any]:
    hourly = None if line.hourly is None else _rounded(line.hourly)
    values = {
        "what": line.what,
        "kind": line.kind,
        "plan": line.plan,
        "count": line.count,
        "each": line.each,
        "hourly": hourly,
        "note": line.note or None,
        "lasting": line.lasting,
    }
    return {key: value for key, value in values.items() if value is not None}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
