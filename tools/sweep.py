"""`make sweep`: lists and deletes what our stacks left in a project. Only `run` does I/O.

An orphan has our tags, is old enough, and is in no state of this checkout. It may be in the state of another checkout,
so it is deleted only if the user names its stack. Resources without our tags are never listed or deleted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.table import Table

from tools.errors import RunFailed, StackError
from tools.metal import Found, MetalApi, Resource
from tools.screen import Screen
from tools.states import Held

_UNITS = {"m": 60, "h": 3600, "d": 86400}
_DEFAULT_AGE = "1h"
DELETE, YES = "delete", "yes"
UNKNOWN = "of another checkout or of a lost state"
"""Label of resources that are in no state of this checkout."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The user's request."""

    delete: bool
    """Whether to delete orphans; otherwise they are only listed."""
    confirmed: str
    """The confirmation code from the list, or `yes`; empty if not confirmed."""
    age: timedelta
    """Younger resources are kept, because somebody may be working with them."""
    of: str
    """Only resources of this stack; empty: those of all stacks, which are only listed."""

    @classmethod
    def from_(cls, environment: Mapping[str, str]) -> Wanted:
        """Reads SWEEP, CONFIRM, AGE and OF from the environment. Raises StackError."""
        sweep, age = environment.get("SWEEP", ""), environment.get("AGE") or _DEFAULT_AGE
        confirmed, of = environment.get("CONFIRM", ""), environment.get("OF", "")
        match = re.fullmatch(r"(\d+)([mhd]?)", age)
        if sweep not in ("", DELETE):
            raise StackError(f"SWEEP={sweep} is not known", remedy=f"do not set it to list, or set SWEEP={DELETE}")
        if match is None:
            raise StackError(f"AGE={age} is not an age", remedy="write minutes, hours or days: 30m, 2h, 1d")
        if not re.fullmatch(r"[^,\s]*", of):
            raise StackError(f"OF={of} names several stacks", remedy="name one at a time")
        if (sweep or confirmed) and not of:
            raise StackError(
                "only a named stack is swept: another checkout may have others up",
                remedy="`make sweep` lists what exists; then name the stack with OF=<stack>, one at a time",
            )
        return cls(
            delete=sweep == DELETE,
            confirmed=confirmed,
            age=timedelta(seconds=int(match[1]) * _UNITS[match[2] or "h"]),
            of=of,
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A resource of ours, with the decision whether it is an orphan."""

    resource: Resource
    kept: str
    """Why it is kept; empty: it is an orphan, as far as this checkout knows."""


def judge(found: Found, wanted: Wanted, held: Held, now: datetime) -> list[Judged]:
    """Decides about each resource. A project of ours is an orphan if everything in it is one.

    Args:
        held: everything in the states of this checkout.
    """
    judged = [Judged(resource=each, kept=_why_kept(each, wanted, held, now)) for each in found.resources]
    projects = [
        Judged(
            resource=each,
            kept=_why_held(each, held) or _why_project_kept(each, judged, found.others.get(each.id, 0), wanted, now),
        )
        for each in found.projects
    ]
    return [*judged, *projects]


def _why_kept(resource: Resource, wanted: Wanted, held: Held, now: datetime) -> str:
    stack, run = resource.marks.get("stack", ""), resource.marks.get("run", "")
    if why := _why_held(resource, held):
        return why
    if run in held.runs:
        return f"of stack {held.runs[run]}, which is up: its next run handles it"
    if not run and stack in held.stacks:
        return f"may belong to stack {stack}, whose state is here"
    if wanted.of and stack != wanted.of:
        return "of another stack than the named one"
    return _why_young(resource, wanted, now)


def _why_held(resource: Resource, held: Held) -> str:
    stack = held.ids.get(resource.id) or held.ids.get(resource.request)
    return f"the state of stack {stack} has it" if stack else ""


def _why_young(resource: Resource, wanted: Wanted, now: datetime) -> str:
    if resource.created is None:
        return "" if wanted.age == timedelta() else "its age is not known"
    return "too young" if now - resource.created < wanted.age else ""


def _why_project_kept(project: Resource, judged: Sequence[Judged], others: int, wanted: Wanted, now: datetime) -> str:
    """Why a project is kept; empty: it is an orphan. Projects have no tags: a project is ours if it contains something
    of ours, and nothing else."""
    inside = [each for each in judged if each.resource.project == project.id]
    if others:
        return "contains resources that this program did not make"
    if not inside:
        return "it has no sign of this program"
    if any(each.kept for each in inside):
        return "contains resources that stay"
    return _why_young(project, wanted, now)


def code(orphans: Sequence[Judged]) -> str:
    """The confirmation code for exactly these orphans."""
    ids = "\n".join(sorted(each.resource.id for each in orphans))
    return hashlib.sha256(ids.encode()).hexdigest()[:8]


def table(judged: Sequence[Judged], now: datetime) -> Table:
    """The table for the user, orphans first."""
    shown = Table(title="resources with this program's tags", title_justify="left", title_style="bold")
    for column in ("kind", "name", "stack", "cluster", "age", ""):
        shown.add_column(column, overflow="fold")
    for each in sorted(judged, key=lambda item: bool(item.kept)):
        resource, marks = each.resource, each.resource.marks
        age = "-" if resource.created is None else _spelled(now - resource.created)
        verdict = each.kept or UNKNOWN
        shown.add_row(resource.kind, resource.name, marks.get("stack", "-"), marks.get("cluster", "-"), age, verdict)
    return shown


def _spelled(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    days, hours = divmod(minutes // 60, 24)
    return f"{days}d {hours}h" if days else f"{hours}h {minutes % 60}m" if hours else f"{minutes}m"


def run(
    api: MetalApi,
    screen: Screen,
    *,
    projects: Collection[str],
    named: str | None,
    wanted: Wanted,
    held: Callable[[], Held],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Lists orphans, and deletes them if that is requested and confirmed. Raises RunFailed while there are orphans.

    Args:
        projects: ids of the projects to search.
        named: name of a project that the stack creates; all projects of that name are searched.
        held: reads the states of this checkout. It is called after the search, so that newly ordered resources are
            known.
    """
    made = [each for each in api.find([], all_projects=True).projects if each.name == named] if named else []
    found = api.find({*projects, *(each.id for each in made)})
    judged = judge(Found(resources=found.resources, projects=tuple(made), others=found.others), wanted, held(), clock())
    orphans = [each for each in judged if not each.kept]
    if judged:
        screen.show(table(judged, clock()))
    if not orphans:
        screen.line(f"sweep: no orphans ({len(judged)} resources of this program stay)", style="bold green")
        return
    if not wanted.of:
        stacks = ", ".join(sorted({each.resource.marks["stack"] for each in orphans if each.resource.marks}))
        raise RunFailed(
            f"sweep: {len(orphans)} resources {UNKNOWN}, of stacks named: {stacks}",
            remedy="find out whose they are; `make sweep OF=<stack>` says how to delete those of one stack",
        )
    how = f"make sweep OF={wanted.of} SWEEP={DELETE} CONFIRM={code(orphans)}"
    if not wanted.delete:
        raise RunFailed(
            f"sweep: {len(orphans)} orphans of stack {wanted.of}, if no other checkout has it up",
            remedy=f"`{how}`, with the same AGE, deletes them",
        )
    if wanted.confirmed not in (code(orphans), YES):
        confirmed = wanted.confirmed
        why = f"CONFIRM={confirmed} was for another list" if confirmed else "the list above was not confirmed"
        raise RunFailed("sweep: nothing was deleted", why=why, remedy=f"`{how}`, with the same AGE")
    api.delete([each.resource for each in orphans], lambda text: screen.line(f"  {text}"))
    screen.line(f"sweep: {len(orphans)} orphans deleted", style="bold green")
