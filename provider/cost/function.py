"""The function `metal-ipi:index:cost`: what a stack's orders cost, as a stack's output tells it.

It is asked by every preview and every `up`, so it never fails for want of a price list: then the cost is said to be
unknown, and why.
"""

from __future__ import annotations

from typing import Any

from provider import order_inputs
from provider.configuration import Settings
from provider.cost import estimate, prices
from provider.cost.prices import PriceList
from provider.errors import ProviderError
from provider.fields import Problem, Reader
from provider.metal_client import MetalClient
from provider.orders import Orders
from provider.resource import Values

TOKEN = "metal-ipi:index:cost"  # noqa: S105 - a function's token
_TIMEOUT, _PATIENCE = 25, 10
"""How long the API may be asked again, and one answer waited for, in seconds: a preview waits for it."""


def check(inputs: Values) -> list[Problem]:
    """All problems of the arguments."""
    reader = Reader(inputs)
    reader.only("orders", "prices", "source")
    order_inputs.read(reader.section("orders"))
    reader.mapping("prices", required=False)
    reader.optional_text("source")
    return reader.problems


async def cost(settings: Settings, inputs: Values) -> dict[str, Any]:
    """`inputs`: the orders; and `prices`, a document of them, with its `source`, in place of the API's list."""
    reader = Reader(inputs)
    ordered = order_inputs.read(reader.section("orders"))
    document = reader.mapping("prices", required=False)
    if document:
        return _told(ordered, prices.of_document(document, ordered, reader.text("source")))
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
