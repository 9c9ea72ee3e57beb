"""Conditions (metav1.Condition): the status of an object, and since when it has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from metal_ipi.cluster_api.api import Object

READY, AVAILABLE, PAUSED, INITIALIZED = "Ready", "Available", "Paused", "Initialized"
PREFLIGHT_PASSED = "PreflightPassed"
"""Of a MetalIpiCluster: the other objects of its cluster wait for it."""
STEP_FAILED = "StepFailed"
"""A reason: a step has failed several times. It is tried again nevertheless."""
HEALTHY, EXTERNALLY, OWNER = "HealthCheckSucceeded", "ExternallyRemediated", "OwnerRemediated"
"""Conditions of Machines, by which MachineHealthCheck, external remediation and owner tell each other."""
_LONGEST = 4000


def condition(kind: str, so: bool | None, reason: str, message: str = "") -> dict[str, Any]:
    """A condition; `so` is whether it is true, None for unknown."""
    status = "Unknown" if so is None else str(so)
    return {"type": kind, "status": status, "reason": reason, "message": message[:_LONGEST]}


def paused(so: bool) -> dict[str, Any]:
    """The condition Paused."""
    return condition(PAUSED, so, "Paused" if so else "NotPaused")


def written(item: Object, said: Sequence[Mapping[str, Any]], now: datetime | None = None) -> list[dict[str, Any]]:
    """The conditions of an object, updated; the time of a condition changes only with its status."""
    before = {each["type"]: each for each in (item.get("status") or {}).get("conditions") or []}
    time = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    generation = item["metadata"].get("generation", 0)
    for each in said:
        old = before.get(each["type"])
        same = old is not None and old["status"] == each["status"]
        since = old["lastTransitionTime"] if old is not None and same else time
        before[each["type"]] = {**each, "lastTransitionTime": since, "observedGeneration": generation}
    return [before[kind] for kind in sorted(before)]


def differ_in_messages(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two statuses have the same conditions, with other messages at most."""
    return _silent(before) == _silent(after)


def _silent(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**each, "message": ""} for each in status.get("conditions") or ()]
