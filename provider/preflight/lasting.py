"""What a cluster keeps as it was ordered, for as long as it is there: its project and its end.

Metal takes the end of a machine with its order only, and moves nothing from project to project: a change would be
obeyed for new machines alone, or delete what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Values

_REMEDY = "Put back what was ordered, or begin anew: `make down` first, then `make up`"


def refuse_changes(old: Values, new: Values) -> None:
    """Raises InvalidInputs with all that must not change; both are inputs of Preflight, `old` those that passed."""
    problems = [
        f"this cluster was ordered {before}, and is now to be {after}: {why}"
        for before, after, why in _changes(old, new)
    ]
    if problems:
        raise InvalidInputs("\n".join([*problems, _REMEDY]))


def _changes(old: Values, new: Values) -> Iterator[tuple[str, str, str]]:
    """What was ordered, what is wanted, and why that cannot be."""
    before, after = _project(old), _project(new)
    if before and before != after:
        why = "what is there would stay behind or be deleted, the machines of the control plane included"
        yield before, after or "on another platform", why
    hours = old.get("lifetimeHours"), new.get("lifetimeHours")
    # Before there were runs, the hours were not among the inputs.
    if old.get("run") and hours[0] != hours[1]:
        yield _end(hours[0]), _end(hours[1]), "the platform takes no other end for machines that are there"


def _project(values: Values) -> str:
    """In which project; empty where nothing is ordered. A project that is made by its name may be renamed."""
    if values.get("projectId"):
        return f"in a project that exists (platform.projectId {values['projectId']})"
    if values.get("projectName"):
        return f"in a project of its own (platform.projectName, platform.organizationId {values['organizationId']})"
    return ""


def _end(hours: float | None) -> str:
    return "without an end (no platform.lifetimeHours)" if hours is None else f"with platform.lifetimeHours {hours:g}"
