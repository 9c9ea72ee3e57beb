"""Preflight: finds problems before anything is ordered. Everything that is ordered depends on this resource.

Life cycle: create and update run the checks, and fail if there are errors. A preview runs no checks, and unchanged
inputs are not checked again. Changes of settings that cannot change while a cluster exists (`lasting`) are refused, in
a preview as well; as everything ordered depends on this resource, nothing was changed at that point. There is nothing
to read or to delete.

Killed at any moment: nothing that lasts was created, so the next run checks again.
"""

from __future__ import annotations

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.preflight import lasting
from metal_ipi.provider.preflight.findings import Report
from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes


class PreflightFailed(ProviderError):
    """There are problems that must be corrected first; the message lists all of them."""


class Preflight(ResourceType):
    """Checks a stack before anything is ordered."""

    token = "metal-ipi:index:Preflight"  # noqa: S105 - a type token
    inputs = Plan

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        lasting.refuse_changes(old, new)
        return simple_changes(old, new, Plan.wire_names())

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {}

    async def create(self, context: Context, inputs: Values) -> Made:
        return Made(id=f"preflight/{inputs['stack']}", outputs=await self._run(context, inputs, again=False))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return await self._run(context, new, again=True)

    async def _run(self, context: Context, inputs: Values, *, again: bool) -> Values:
        from metal_ipi.provider.preflight import running

        plan = Plan.read(inputs)
        report = await running.run(plan, context.settings, again=again)
        if report.errors:
            raise PreflightFailed(_failure(report))
        for finding in report.warnings:
            await context.status.warn(f"{finding.host}: {finding}" if finding.host else str(finding))
        await context.status.remark(report.summary())
        return {}


def _failure(report: Report) -> str:
    return f"nothing was ordered: {report.summary()}\n{report.problems()}"
