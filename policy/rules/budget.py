"""Rule: the costs of a stack stay within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .base import Found, Given, Resource, Rule, mapping, strings
from .machines import STACK


def _check(resources: Sequence[Resource], given: Given) -> Iterator[Found]:
    most = RULE.parameter(given, "maxHourly")
    if most is None:
        return
    for resource in resources:
        cost = mapping(resource.properties.get("cost")) if resource.type == STACK else {}
        if not cost:
            continue
        hourly = cost.get("hourlyAtMost", cost.get("hourly"))
        unknown = strings(cost.get("unknown"))
        if isinstance(hourly, int | float) and hourly > most:
            yield Found(
                f"the stack would cost {hourly:.2f} {cost.get('currency', 'USD')} an hour, and its budget is {most:g}:"
                " order fewer or smaller machines, or raise the budget in the policy configuration"
                " (hourly-budget.maxHourly)",
                resource.urn,
            )
        if unknown and RULE.parameter(given, "unknown") == "refuse":
            yield Found(
                f"what {', '.join(unknown)} cost is not known ({cost.get('source', 'no price list')}): set a list of "
                "prices (`metal-ipi:cost.priceFile`), or set hourly-budget.unknown to allow",
                resource.urn,
            )


RULE = Rule(
    name="hourly-budget",
    description="The stack costs no more an hour than its budget.",
    parameters={
        "maxHourly": {
            "type": "number",
            "description": "USD an hour, including bids on the spot market; not set: no limit.",
        },
        "unknown": {
            "type": "string",
            "enum": ["allow", "refuse"],
            "default": "allow",
            "description": "Whether a stack with unknown costs is refused, as a rehearsal without prices.",
        },
    },
    stack=_check,
)
