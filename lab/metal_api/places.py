"""Where things are: the metro or the facility that a body or a query names, by code or by id."""

from __future__ import annotations

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import FACILITIES, METROS, named


def place(body: Body) -> tuple[str, str | None]:
    """Metro, and facility if that was asked for instead, by their codes; notes what is wrong with either."""
    metro, facility = body.text("metro"), body.text("facility")
    found, there = named(METROS, metro), named(FACILITIES, facility)
    if metro and facility:
        body.problems.append("Cannot specify both metro and facility")
    elif there:
        return there.metro, there.code
    elif facility:
        body.problems.append(f"{facility} is not a valid facility")
    elif found:
        return found.code, None
    else:
        body.problems.append(f"{metro} is not a valid metro" if metro else "Metro can't be blank")
    return "", None


def is_in(wanted: str, *, metro: str, facility: str | None) -> bool:
    """Whether something is in what a `metro` or a `facility` filter of a list names."""
    found, there = named(METROS, wanted), named(FACILITIES, wanted)
    return (found is not None and found.code == metro) or (there is not None and there.code == facility)
