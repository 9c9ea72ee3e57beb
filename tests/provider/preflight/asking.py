"""Runs the checks of a stack against an account that a test describes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from provider import configuration
from provider.preflight import running
from provider.preflight.findings import Finding, Report
from provider.preflight.plan import Plan
from tests.provider.metal_answers import PROJECT, TOKEN, Api

TAGS = ["metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.facility.test"]


def machines(role: str, count: int, slug: str = "c3.medium.x86", **more: Any) -> dict[str, Any]:
    names = [f"c-{role}-{number}" for number in range(count)]
    return {"role": role, "hostnames": names, "plan": slug, "operatingSystem": "custom_ipxe", **more}


ORDERS: dict[str, Any] = {
    "metro": "da",
    "machines": [machines("bootstrap", 1, "c3.small.x86"), machines("control-plane", 3), machines("worker", 2)],
}
INPUTS: dict[str, Any] = {
    "stack": "t",
    "run": "r1",
    "domain": "c.facility.test",
    "architecture": "x86_64",
    "projectId": PROJECT,
    "orders": ORDERS,
}


def inputs(orders: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Inputs of a good stack, with some of its orders and of the rest changed; what is None is left out."""
    values = {**INPUTS, **({"orders": {**ORDERS, **orders}} if orders else {}), **more}
    cleared = {key: value for key, value in values.items() if value is not None}
    wanted = cleared.get("orders")
    if wanted is not None:
        cleared["orders"] = {key: value for key, value in wanted.items() if value is not None}
    return cleared


def report(api: Api, config: Mapping[str, Any] | None = None, *, again: bool = False, **values: Any) -> Report:
    """The report about a stack; `config` is the provider's beside the section `metal`."""
    settings, problems = configuration.parse({"metal": {"authToken": TOKEN}, **(config or {})})
    plan = Plan.read(inputs(**values))
    assert problems == []
    return asyncio.run(running.run(plan, settings, again=again, transport=api.transport))


def of(found: Report, check: str) -> list[Finding]:
    """What one check found."""
    return [finding for finding in found.findings if finding.check == check]


def the(found: Report, check: str, level: str) -> str:
    """What a check's only finding says, and its remedy; it must be of the level."""
    (finding,) = of(found, check)
    assert finding.level == level, str(finding)
    return f"{finding.what}\n{finding.remedy}"
