"""The function `metal-ipi:index:cost`: what a stack's orders cost, as a stack's output tells it.

It is asked by every preview and every `up`, so it never fails for want of a price list: then the cost is said to be
unknown, and why.
"""

from __future__ import annotations

from typing import Annotated, Any

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.cost import estimate, prices
from metal_ipi.provider.cost.prices import PriceList
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.given import LEFT_OUT, default
from metal_ipi.provider.inputs import Inputs, Problem
from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.orders import Orders
from metal_ipi.provider.resource import Values

TOKEN = "metal-ipi:index:cost"  # noqa: S105 - a function's token
_TIMEOUT, _PATIENCE = 25, 10
"""How long the API may be asked again, and one answer waited for, in seconds: a preview waits for it."""


class CostArgs(Inputs):
    """What is asked."""

    orders: Orders
    """What is ordered."""
    prices: Annotated[dict[str, Any], LEFT_OUT] = default({})
    """A document of prices, in place of the platform's list."""
    source: str | None = None
    """Where that comes from."""


def check(inputs: Values) -> list[Problem]:
    """All problems of the arguments."""
    return CostArgs.problems(inputs)


async def cost(settings: Settings, inputs: Values) -> dict[str, Any]:
    """`inputs`: the orders; and `prices`, a document of them, with its `source`, in place of the API's list."""
    given = CostArgs.read(inputs)
    ordered = given.orders
    if given.prices:
        return _told(ordered, prices.of_document(given.prices, ordered, given.source or ""))
    try:
        async with MetalClient(settings.need_metal(), timeout=_TIMEOUT, patience=_PATIENCE) as client:
            return _told(ordered, await prices.asked(client, ordered))
    except ProviderError as error:
        return unknown(f"the price list cannot be had: {error}")


def _told(ordered: Orders, known: PriceList) -> dict[str, Any]:
    return estimate.summary(estimate.lines(ordered, known), known)


def unknown(why: str) -> dict[str, Any]:
    """The answer without a price list."""
    return {"unknown": ["everything"], "source": why, "lines": []}
