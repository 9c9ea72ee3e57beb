"""Rule: which plans machines may have."""

from __future__ import annotations

from collections.abc import Iterator

from .base import Given, Resource, Rule, strings
from .machines import ROLES, known, ordered

_SETTINGS = {"bootstrap": "bootstrapPlan", "control-plane": "controlPlanePlan", "worker": "workerPlan"}


def _check(resource: Resource, given: Given) -> Iterator[str]:
    for machine in ordered(resource):
        if machine.role not in ROLES or not known(machine.plan):
            continue
        allowed = RULE.parameter(given, machine.role)
        if allowed is not None and machine.plan not in allowed:
            yield (
                f"{machine.what}: plan {machine.plan} is not allowed for the role {machine.role}: set"
                f" `metal-ipi:platform.{_SETTINGS[machine.role]}` to one of {', '.join(strings(allowed)) or 'none'},"
                f" or allow it in the policy configuration (allowed-plans.{machine.role})"
            )


RULE = Rule(
    name="allowed-plans",
    description="Machines of a role have plans that are allowed for it.",
    parameters={
        role: {
            "type": "array",
            "items": {"type": "string"},
            "description": f"Plans for {role} machines; not set: any.",
        }
        for role in ROLES
    },
    resource=_check,
)
