"""Price queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi


def cost(
    orders: pulumi.Input[Mapping[str, Any]],
    *,
    prices: Mapping[str, Any] | None = None,
    source: str | None = None,
    opts: pulumi.InvokeOptions | None = None,
) -> pulumi.Output[dict[str, Any]]:
    """The cost of orders.

    Args:
        orders: in the form of `Orders.to_wire`.
        prices: used instead of the platform's price list.
        source: where `prices` come from.

    Returns {"currency", "hourly", "monthly", "hoursPerMonth", "installing" (per hour, with the bootstrap machine),
    "unknown" (orders without a price), "source", "lines"}; see docs/cost.md.
    """
    given = {"orders": orders, "prices": prices, "source": source}
    args = {key: value for key, value in given.items() if value is not None}
    return pulumi.runtime.invoke_output("metal-ipi:index:cost", args, opts)
