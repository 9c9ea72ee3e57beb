"""The price list: plans and spot market prices from the Metal API, or from a file in the same format.

A price that is not in the list is None, never 0. Fields: the API's reference (plans, market/spot/prices).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metal_ipi.provider import market
from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.orders import Orders
from metal_ipi.provider.platforms.equinix_metal.documents import id_of

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """Prices in USD per hour, for one location."""

    source: str
    """The source, for people."""
    plans: Mapping[str, float] = field(default_factory=dict[str, float])
    """Prices of machines on demand, by the plan's slug; the location's own price if it has one."""
    spot: Mapping[str, float] = field(default_factory=dict[str, float])
    """Current prices on the spot market, by the plan's slug; the lowest of the configured facilities."""
    address: float | None = None
    """The price of a public IPv4 address. The API does not have it, but a file may."""
    gateway: float | None = None
    """The price of a VLAN's gateway. The API does not have it, but a file may."""


async def asked(client: MetalClient, orders: Orders) -> PriceList:
    """Fetch the API's price list. Raises RemoteError."""
    plans, metros, facilities = await asyncio.gather(
        client.listed("/plans", "plans"),
        client.listed("/locations/metros", "metros"),
        client.listed("/facilities", "facilities"),
    )
    wanted = {order.plan for order in orders.machines if order.spot_max_price is not None}
    spot = {plan: await market.spot_price(client, orders, plan) for plan in sorted(wanted)}
    return PriceList(
        source="the Metal API's price list",
        plans=_of_plans(plans, orders, {str(item["id"]): str(item["code"]) for item in (*metros, *facilities)}),
        spot={plan: price for plan, price in spot.items() if price is not None},
    )


def of_document(document: Document, orders: Orders, source: str) -> PriceList:
    """The price list of a file: the API's answer to GET /plans, with optional "spot_market_prices" (in the API's
    format), "address_hour" and "gateway_hour"."""
    places = (orders.metro,) if orders.metro is not None else orders.facilities
    spot = {order.plan: market.of_answer(document, places, order.plan) for order in orders.machines}
    return PriceList(
        source=source,
        plans=_of_plans(document.get("plans") or [], orders, {}),
        spot={plan: price for plan, price in spot.items() if price is not None},
        address=_amount(document.get("address_hour")),
        gateway=_amount(document.get("gateway_hour")),
    )


def _of_plans(plans: list[Document], orders: Orders, codes: Mapping[str, str]) -> dict[str, float]:
    """Prices by the plan's slug. `codes`: the code of each metro and facility, by id."""
    found = {str(plan["slug"]): _of_plan(plan, orders, codes) for plan in plans}
    return {slug: price for slug, price in found.items() if price is not None}


def _of_plan(plan: Document, orders: Orders, codes: Mapping[str, str]) -> float | None:
    """A plan's price: the metro's, or the first facility's with a price of its own; otherwise the plan's general
    price."""
    member, places = (
        ("available_in_metros", [orders.metro]) if orders.metro is not None else ("available_in", orders.facilities)
    )
    own: dict[str, float] = {}
    for entry in plan.get(member) or ():
        price = _hour(entry.get("price"))
        if price is not None:
            own[str(entry.get("code") or codes.get(id_of(entry)))] = price
    return next((own[place] for place in places if place in own), _hour(plan.get("pricing")))


def _hour(pricing: object) -> float | None:
    return _amount(pricing.get("hour")) if isinstance(pricing, Mapping) else None


def _amount(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
