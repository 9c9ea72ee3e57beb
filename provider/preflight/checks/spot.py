"""Preflight check: are the bids high enough at the moment? Spot prices change all the time, so this only warns."""

from __future__ import annotations

from metal_ipi.provider.market import spot_price
from metal_ipi.provider.preflight.findings import Finding, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "spot"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per order from the spot market."""
    findings: list[Finding] = []
    for order, _ in await subject.missing():
        if (bid := order.spot_max_price) is None:
            continue
        price = await spot_price(subject.metal.client, subject.orders, order.plan)
        if price is None:
            findings.append(
                warning(
                    f"the spot market has no price for {order.plan} in {subject.orders.place} at the moment",
                    "raise platform.spot.maxPrice and wait, choose another plan, or order on demand",
                )
            )
        elif price > bid:
            findings.append(
                warning(
                    f"{order.plan} costs {price:g} USD per hour on the spot market, and {bid:g} are bid",
                    f"set platform.spot.maxPrice to {price:g} or more, or wait until the price falls",
                )
            )
        else:
            findings.append(ok(f"{order.plan} costs {price:g} USD per hour, {bid:g} are bid"))
    return findings
