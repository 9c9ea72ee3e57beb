"""Spot market prices of the Metal API: current prices of plans, in USD per hour.

Fields: the API's reference (market/spot/prices).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.orders import Orders


async def spot_price(client: MetalClient, orders: Orders, plan: str) -> float | None:
    """The current price of a plan on the spot market; None if it is not traded."""
    if orders.metro is not None:
        params = {"metro": orders.metro, "plan": plan}
        answer = await client.repeat("GET", "/market/spot/prices/metros", params=params)
        return of_answer(answer, (orders.metro,), plan)
    found: list[float] = []
    for facility in orders.facilities:
        answer = await client.repeat("GET", "/market/spot/prices", params={"facility": facility, "plan": plan})
        price = of_answer(answer, (facility,), plan)
        found += [] if price is None else [price]
    return min(found, default=None)


def of_answer(answer: Mapping[str, Any], places: tuple[str, ...], plan: str) -> float | None:
    """The lowest price of a plan in one of these metros or facilities; None if it is not traded."""
    prices = answer.get("spot_market_prices") or {}
    found = [((prices.get(place) or {}).get(plan) or {}).get("price") for place in places]
    return min((float(price) for price in found if price is not None), default=None)
