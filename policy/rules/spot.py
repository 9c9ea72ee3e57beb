"""Rule: which machines may come from the spot market."""

from __future__ import annotations

from collections.abc import Iterator

from .base import Given, Resource, Rule
from .machines import ordered


def _check(resource: Resource, given: Given) -> Iterator[str]:
    del given
    for machine in ordered(resource):
        if machine.spot and machine.role != "worker":
            yield (
                f"{machine.what} ({machine.role or 'no role'}) would come from the spot market, which terminates "
                "machines whenever somebody bids more: order it on demand or on a reserved server"
            )


RULE = Rule(
    name="no-spot-control-plane",
    description="Only workers come from the spot market: etcd does not survive machines that are terminated.",
    resource=_check,
)
