"""Preflight check: does the project allow so many machines?

The only limit that the API tells is `max_devices` of a project: a number per plan, or nothing. Limits of addresses and
VLANs are only visible when a request exceeds them; docs/preflight.md lists what is known of them.
"""

from __future__ import annotations

from collections import Counter

from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "limits"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per plan whose limit would be exceeded."""
    if subject.metal.project is None:
        return []
    limits = (await subject.metal.details()).get("max_devices") or {}
    ordered: Counter[str] = Counter()
    for order, names in await subject.missing():
        ordered[order.plan] += len(names)
    there = Counter(str((device.get("plan") or {}).get("slug")) for device in await subject.metal.devices())
    problems = [
        error(
            f"the project's limit is {limits[plan]} x {plan}: it has {there[plan]}, and {count} more are ordered",
            "ask Metal's support for more, or use another project or plan",
        )
        for plan, count in ordered.items()
        if isinstance(limits.get(plan), int) and there[plan] + count > limits[plan]
    ]
    named = ", ".join(sorted(set(ordered) & set(limits)))
    what = f"within the project's limits of {named}" if named else "the API reports no limit of these plans"
    return problems or [ok(what)]
