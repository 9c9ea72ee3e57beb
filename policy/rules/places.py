"""Rule: in which metros and facilities machines may be ordered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .base import Given, Resource, Rule
from .machines import known, ordered


def _check(resource: Resource, given: Given) -> Iterator[str]:
    metros, facilities = RULE.parameter(given, "metros"), RULE.parameter(given, "facilities")
    seen: set[str] = set()
    for machine in ordered(resource):
        if metros is not None and known(machine.metro) and machine.metro not in metros:
            seen.add(
                f"metro '{machine.metro}' is not allowed: set `metal-ipi:platform.metro` to one of {_list(metros)},"
                " or allow it in the policy configuration (allowed-places.metros)"
            )
        strange = [each for each in machine.facilities if facilities is not None and each not in facilities]
        if strange:
            seen.add(
                f"{_list(strange)} is not among the allowed facilities: set `metal-ipi:platform.facilities` to some of"
                f" {_list(facilities)}, or allow it in the policy configuration (allowed-places.facilities)"
            )
    yield from sorted(seen)


def _list(names: Sequence[str] | None) -> str:
    return ", ".join(names or ()) or "none"


_NAMES = {"type": "array", "items": {"type": "string"}}
RULE = Rule(
    name="allowed-places",
    description="Machines are ordered in allowed metros and facilities only.",
    parameters={
        "metros": {**_NAMES, "description": "Metro codes; not set: any."},
        "facilities": {**_NAMES, "description": "Facility codes; not set: any."},
    },
    resource=_check,
)
