"""The function `metal-ipi:index:cost`: the cost of a stack's orders, for the stack's output.

Every preview and every `up` calls it. So a missing price list is not an error: then the cost is reported as unknown,
with the reason.
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
"""Total time for retries, and timeout of one answer, in seconds. They are short, because previews wait for them."""


class CostArgs(Inputs):
    """The function's arguments."""

    orders: Orders
    """What is ordered."""
    prices: Annotated[dict[str, Any], LEFT_OUT] = default({})
    """A price document that replaces the platform's price list."""
    source: str | None = None
    """The source of the price document."""


def check(inputs: Values) -> list[Problem]:
    """All problems of the arguments."""
    return CostArgs.problems(inputs)


async def cost(settings: Settings, inputs: Values) -> dict[str, Any]:
    """The function. `inputs`: the orders; and optionally `prices`, a price document, with its `source`."""
    given = CostArgs.read(inputs)
    ordered = given.orders
    if given.prices:
        return _report(ordered, prices.of_document(given.prices, ordered, given.source or ""))
    try:
        async with MetalClient(settings.need_metal(), timeout=_TIMEOUT, patience=_PATIENCE) as client:
            return _report(ordered, await prices.asked(client, ordered))
    except ProviderError as error:
        return unknown(f"the price list cannot be read: {error}")


def _report(ordered: Orders, known: PriceList) -> dict[str, Any]:
    return estimate.summary(estimate.lines(ordered, known), known)


def unknown(why: str) -> dict[str, Any]:
    """The result without a price list."""
    return {"unknown": ["everything"], "source": why, "lines": []}
