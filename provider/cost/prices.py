"""The price list: what the Metal API says of plans and of the spot market, or a file in the same words.

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
    """Prices in USD per hour, for one place."""

    source: str
    """Where they are from, for people."""
    plans: Mapping[str, float] = field(default_factory=dict[str, float])
    """By slug, of machines on demand; the place's own price where it has one."""
    spot: Mapping[str, float] = field(default_factory=dict[str, float])
    """By slug, on the spot market at the moment; the lowest of the facilities that are named."""
    address: float | None = None
    """Of a public IPv4 address. The API has no price of them, a file may."""
    gateway: float | None = None
    """Of a VLAN's gateway; the same."""


async def asked(client: MetalClient, orders: Orders) -> PriceList:
    """The API's list. Raises RemoteError when it cannot be had."""
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
    """The same of a file: what the API answers to GET /plans, with "spot_market_prices" (as it answers that),
    "address_hour" and "gateway_hour" where they are known."""
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
    """`codes`: the code of each metro and facility, by id."""
    found = {str(plan["slug"]): _of_plan(plan, orders, codes) for plan in plans}
    return {slug: price for slug, price in found.items() if price is not None}


def _of_plan(plan: Document, orders: Orders, codes: Mapping[str, str]) -> float | None:
    """The metro's own price, or the first facility's, where they differ from the plan's."""
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
