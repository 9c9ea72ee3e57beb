"""What can be asked about prices."""

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
    """What orders (as `Orders.to_wire` has them) cost: {"currency", "hourly", "monthly", "hoursPerMonth", "installing"
    (per hour, with the bootstrap machine), "unknown" (what has no price), "source", "lines"}; docs/cost.md. `prices`
    take the place of the platform's list.
    """
    given = {"orders": orders, "prices": prices, "source": source}
    args = {key: value for key, value in given.items() if value is not None}
    return pulumi.runtime.invoke_output("metal-ipi:index:cost", args, opts)
