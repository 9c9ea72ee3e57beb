"""What an interrupted run left behind is found and cleared before the next one starts.

The engine writes down an operation before it begins it; when it is killed in the middle, it does not know whether the
machine was ordered. Machines and keys carry the stack's name, so they can be found: nothing can run on a machine that
no state knows, and it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tools.metal import Key, Machine, Project, Reservation
from tools.state import EPHEMERAL, Deployment

CLOCK_SKEW = timedelta(minutes=2)
"""How far the API's clock and ours may be apart."""

Say = Callable[[str], None]


class Platform(Protocol):
    """What is asked of the Metal API."""

    def machines(self, project: str) -> list[Machine]: ...
    def keys(self, project: str) -> list[Key]: ...
    def reservations(self, project: str) -> list[Reservation]: ...
    def projects(self) -> list[Project]: ...
    def delete_machine(self, id: str) -> None: ...
    def delete_key(self, id: str) -> None: ...
    def delete_reservation(self, id: str) -> None: ...
    def delete_project(self, id: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """What carries the stack's name and is in no state."""

    machines: tuple[Machine, ...] = ()
    keys: tuple[Key, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    projects: tuple[Project, ...] = ()
    older: tuple[str, ...] = ()
    """Names of those that existed before the interrupted run began, or hold machines: others may know them."""

    def __bool__(self) -> bool:
        return bool(self.machines or self.keys or self.reservations or self.projects)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """How to look for leftovers."""

    stack: str
    """The stack's name: in the tag `metal-ipi:stack=<stack>` and the key label `metal-ipi:<stack>:<cluster>`."""
    cluster: str
    """The cluster's domain: in the tag `metal-ipi:cluster=<domain>`. Another team's stack may have the same name."""
    projects: frozenset[str]
    """The projects to look into."""
    unknown_projects: frozenset[str]
    """Names of projects whose creation was interrupted."""
    since: datetime | None
    """When the interrupted run began; None: the project is the stack's own (the lab), everything counts."""
    keep_bootstrap: bool
    """Whether a bootstrap machine is left for its resource, which finds and adopts (or removes) it by its tags."""


def scan_for(
    stack: str, cluster: str, state: Deployment, project: str | None, since: datetime | None, *, destroying: bool
) -> Scan:
    """What to look for; a destroy keeps the bootstrap machine only for a resource that removes it."""
    return Scan(
        stack=stack,
        cluster=cluster,
        projects=frozenset(state.project_ids() | ({project} if project else set())),
        unknown_projects=state.pending_projects(),
        since=since,
        keep_bootstrap=state.has(EPHEMERAL) if destroying else True,
    )


def find(platform: Platform, scan: Scan, state: Deployment) -> Leftovers:
    """Look for what carries the stack's name, and for projects of its own, that are not in its state."""
    known = state.ids()
    machines: list[Machine] = []
    keys: list[Key] = []
    reservations: list[Reservation] = []
    ours = {f"metal-ipi:stack={scan.stack}", f"metal-ipi:cluster={scan.cluster}"}
    older: list[str] = []
    for project in sorted(scan.projects):
        for machine in platform.machines(project):
            if not ours <= set(machine.tags) or machine.id in known:
                continue
            if scan.keep_bootstrap and "metal-ipi:role=bootstrap" in machine.tags:
                continue
            if _is_older(machine.created, scan.since):
                older.append(f"machine {machine.hostname} ({machine.id})")
            else:
                machines.append(machine)
        for key in platform.keys(project):
            if key.label != f"metal-ipi:{scan.stack}:{scan.cluster}" or key.id in known:
                continue
            if _is_older(key.created, scan.since):
                older.append(f"SSH key {key.label} ({key.id})")
            else:
                keys.append(key)
        for block in platform.reservations(project):
            if not ours <= block.tags or block.id in known:
                continue
            if _is_older(block.created, scan.since):
                older.append(f"reserved address {block.network} ({block.id})")
            else:
                reservations.append(block)
    projects: list[Project] = []
    for project in platform.projects() if scan.unknown_projects else ():
        if project.name not in scan.unknown_projects or project.id in known:
            continue
        if _is_older(project.created, scan.since) or platform.machines(project.id):
            older.append(f"project {project.name} ({project.id})")
        else:
            projects.append(project)
    return Leftovers(
        machines=tuple(machines),
        keys=tuple(keys),
        reservations=tuple(reservations),
        projects=tuple(projects),
        older=tuple(older),
    )


def clear(platform: Platform, leftovers: Leftovers, say: Say) -> None:
    """Delete leftovers, and say which; raises RecoveryFailed when one does not go."""
    for machine in leftovers.machines:
        say(f"deleting machine {machine.hostname} ({machine.id}, {machine.state}): no state knows it")
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(platform.delete_machine, [machine.id for machine in leftovers.machines]))
    for key in leftovers.keys:
        say(f"deleting SSH key {key.label} ({key.id}): no state knows it")
        platform.delete_key(key.id)
    for block in leftovers.reservations:
        say(f"giving back reserved address {block.network} ({block.id}): no state knows it")
        platform.delete_reservation(block.id)
    for project in leftovers.projects:
        say(f"deleting project {project.name} ({project.id}): no state knows it, and no machine is in it")
        platform.delete_project(project.id)
    for name in leftovers.older:
        say(f"left alone: {name} carries this stack's name, but is older than the interrupted run, or in use")


def _is_older(created: datetime | None, since: datetime | None) -> bool:
    return since is not None and (created is None or created < since - CLOCK_SKEW)
