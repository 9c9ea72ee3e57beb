"""Runs the checks of a stack: against an account that a test describes, a BMC, or nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from metal_ipi.provider.preflight import running
from metal_ipi.provider.preflight.findings import Finding, Report
from metal_ipi.provider.preflight.plan import Plan
from tests.provider.fake_bmc import FakeBmc
from tests.provider.harness import settings_of
from tests.provider.metal_answers import PROJECT, TOKEN, Api

TAGS = ["metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.facility.test"]


def machines(role: str, count: int, slug: str = "c3.medium.x86", **more: Any) -> dict[str, Any]:
    names = [f"c-{role}-{number}" for number in range(count)]
    return {"role": role, "hostnames": names, "plan": slug, "operatingSystem": "custom_ipxe", **more}


ORDERS: dict[str, Any] = {
    "metro": "da",
    "machines": [machines("bootstrap", 1, "c3.small.x86"), machines("control-plane", 3), machines("worker", 2)],
}
NOTHING_ORDERED: dict[str, Any] = {"stack": "t", "domain": "c.facility.test", "architecture": "x86_64"}
INPUTS: dict[str, Any] = {**NOTHING_ORDERED, "run": "r1", "projectId": PROJECT, "orders": ORDERS}


def inputs(orders: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Inputs of a good stack, with some of its orders and of the rest changed; what is None is left out."""
    values = {**INPUTS, **({"orders": {**ORDERS, **orders}} if orders else {}), **more}
    cleared = {key: value for key, value in values.items() if value is not None}
    wanted = cleared.get("orders")
    if wanted is not None:
        cleared["orders"] = {key: value for key, value in wanted.items() if value is not None}
    return cleared


async def ask(
    config: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    again: bool = False,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Report:
    """The report about a stack with these inputs; `config` is the provider's."""
    return await running.run(Plan.read(values), settings_of(**config), again=again, transport=transport)


def report(api: Api, *, again: bool = False, **values: Any) -> Report:
    """The report about a stack that orders machines."""
    config = {"metal": {"authToken": TOKEN}}
    return asyncio.run(ask(config, inputs(**values), again=again, transport=api.transport))


def server(name: str = "worker-0", **more: Any) -> dict[str, Any]:
    return {"name": name, "role": name.rpartition("-")[0], "bmc": name, **more}


def rack(bmc: FakeBmc, *servers: dict[str, Any], again: bool = False, **more: Any) -> Report:
    """The report about a rack, whose servers all are behind one BMC; `settings` of a server are its BMC's."""
    bmcs = {str(each["bmc"]): bmc.settings(**each.get("settings", {})) for each in servers if "bmc" in each}
    plain = [{key: value for key, value in each.items() if key != "settings"} for each in servers]
    values = {**NOTHING_ORDERED, "version": "4.19.0", "servers": plain, **more}
    return asyncio.run(ask({"bmcs": bmcs}, values, again=again))


def tells(bmc: FakeBmc, gib: Any, **processors: Any) -> None:
    """A BMC tells so much memory."""
    bmc.machine.extra = {"MemorySummary": {"TotalSystemMemoryGiB": gib}, "ProcessorSummary": processors}


def of(found: Report, check: str) -> list[Finding]:
    """What one check found."""
    return [finding for finding in found.findings if finding.check == check]


def the(found: Report, check: str, level: str) -> str:
    """What a check's only finding says, and its remedy; it must be of the level."""
    (finding,) = of(found, check)
    assert finding.level == level, str(finding)
    return f"{finding.what}\n{finding.remedy}"
