"""Preflight check: does the metro or facility have enough machines at the moment?

The API only answers yes or no for a quantity; it never tells how many machines there are. Reserved servers do not need
capacity, and the spot market has a check of its own (`spot`). Machines that exist already are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from metal_ipi.provider.orders import ANY
from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "capacity"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per plan."""
    wanted: Counter[str] = Counter()
    for order, names in await subject.missing():
        if not order.reservations and order.spot_max_price is None:
            wanted[order.plan] += len(names)
    if not wanted:
        return [ok("no machine is ordered on demand")]
    if (metro := subject.orders.metro) is not None:
        has = await _capacity(subject, "metros", "metro", {(plan, metro): count for plan, count in wanted.items()})
        return [_finding(plan, count, metro, enough=has[plan, metro]) for plan, count in wanted.items()]
    return await _in_facilities(subject, wanted)


async def _in_facilities(subject: Subject, wanted: Mapping[str, int]) -> list[Finding]:
    """Metal places each machine in the first facility that has room, so several facilities together may be enough
    although none of them has room for all."""
    named = [code for code in subject.orders.facilities if code != ANY]
    if not named:
        what = f"where {_all(wanted)} are ordered is left to Metal (any), so it cannot be checked"
        return [ok(what)]
    whole = {(plan, code): count for plan, count in wanted.items() for code in named}
    has = await _capacity(subject, "", "facility", whole)
    one = await _capacity(subject, "", "facility", dict.fromkeys(whole, 1))
    findings: list[Finding] = []
    for plan, count in wanted.items():
        first = next((code for code in named if has[plan, code]), None)
        some = [code for code in named if one[plan, code]]
        if first is not None or not some:
            findings.append(_finding(plan, count, first or ", ".join(named), enough=first is not None))
        elif ANY not in subject.orders.facilities:
            findings.append(
                warning(
                    f"no facility alone has {count} x {plan}; there are some in {', '.join(some)}",
                    "orders may be refused: name more facilities, set metro instead, or use another plan",
                )
            )
    return findings


async def _capacity(
    subject: Subject, path: str, key: str, wanted: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], bool]:
    """Asks the capacity API. Returns, for each pair of plan and place, whether the place has that many."""
    # The API expects the quantity as a string.
    servers = [{key: place, "plan": plan, "quantity": str(count)} for (plan, place), count in wanted.items()]
    answer = await subject.metal.client.repeat("POST", f"/capacity/{path}".rstrip("/"), json={"servers": servers})
    said = {(str(each.get("plan")), str(each.get(key))): each.get("available") for each in answer.get("servers") or []}
    return {place: said.get(place) is True for place in wanted}


def _finding(plan: str, count: int, place: str, *, enough: bool) -> Finding:
    if enough:
        return ok(f"{place} has {count} x {plan}")
    return error(
        f"{place} does not have {count} x {plan} at the moment",
        "use another plan, metro or facility (`metal capacity get` lists the capacity), fewer machines, or"
        " reserved servers (platform.reservations)",
    )


def _all(wanted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} x {plan}" for plan, count in wanted.items())
