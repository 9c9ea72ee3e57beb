"""Settings that cannot change while a cluster exists: its project and its end.

Metal takes the termination time only when a machine is ordered, and cannot move anything to another project. A change
would apply to new machines only, or delete what exists.
"""

from __future__ import annotations

from collections.abc import Iterator

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Values

_REMEDY = "Restore the former setting, or install the cluster again: `make down` first, then `make up`"


def refuse_changes(old: Values, new: Values) -> None:
    """Raises InvalidInputs with all forbidden changes.

    Args:
        old: the inputs of Preflight that passed last.
        new: the new ones.
    """
    problems = [
        f"this cluster was ordered {before}, but the settings now say {after}: {why}"
        for before, after, why in _changes(old, new)
    ]
    if problems:
        raise InvalidInputs("\n".join([*problems, _REMEDY]))


def _changes(old: Values, new: Values) -> Iterator[tuple[str, str, str]]:
    """Yields for each forbidden change: what was ordered, what is wanted, and why that is impossible."""
    before, after = _project(old), _project(new)
    if before and before != after:
        why = "existing resources would stay behind or be deleted, including the control plane machines"
        yield before, after or "on another platform", why
    hours = old.get("lifetimeHours"), new.get("lifetimeHours")
    # Old states, from before there were runs, do not have the hours among the inputs.
    if old.get("run") and hours[0] != hours[1]:
        yield _end(hours[0]), _end(hours[1]), "the platform cannot change the end of existing machines"


def _project(values: Values) -> str:
    """A text that identifies the project; empty if nothing is ordered. The name of a project that this program creates
    may change."""
    if values.get("projectId"):
        return f"in a project that exists (platform.projectId {values['projectId']})"
    if values.get("projectName"):
        return f"in a project of its own (platform.projectName, platform.organizationId {values['organizationId']})"
    return ""


def _end(hours: float | None) -> str:
    return "without an end (no platform.lifetimeHours)" if hours is None else f"with platform.lifetimeHours {hours:g}"
