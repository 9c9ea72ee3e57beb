"""Finds and removes what an interrupted run left behind, before the next run starts.

The engine records an operation before it begins. If it is killed meanwhile, it does not know whether the machine was
ordered. Machines and keys have tags with the stack's name, so they can be found. A machine that is in no state runs
nothing of value, so it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tools.metal import MetalApi, Resource, Say
from tools.state import EPHEMERAL, Deployment

CLOCK_SKEW = timedelta(minutes=2)
"""Maximum difference between the API's clock and ours."""
IN_USE = "in use"
"""The state of a project that contains machines."""


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """Resources with the stack's tags that are in no state."""

    resources: tuple[Resource, ...] = ()
    older: tuple[Resource, ...] = ()
    """Resources that existed before the interrupted run, or projects with machines: they are not deleted."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What to search."""

    stack: str
    """The stack's name in tags."""
    cluster: str
    """The cluster's domain in tags: another team's stack may have the same name."""
    run: str | None
    """The run of the state: resources of another run belong to another checkout. None: no run has ordered anything
    yet."""
    projects: frozenset[str]
    """The projects to search."""
    unknown_projects: frozenset[str]
    """Names of projects whose creation was interrupted."""
    since: datetime | None
    """When the interrupted run began; None: the whole project belongs to the stack (the lab), so age does not
    matter."""
    keep_bootstrap: bool
    """Whether to keep a bootstrap machine, because its resource finds it by its tags, and adopts or removes it."""


def scan_for(
    stack: str,
    cluster: str,
    state: Deployment,
    project: str | None,
    since: datetime | None,
    *,
    run: str | None,
    destroying: bool,
) -> Scan:
    """What to search. A destroy keeps the bootstrap machine only if the state has a resource that removes it."""
    return Scan(
        stack=stack,
        cluster=cluster,
        run=run,
        projects=frozenset(state.project_ids() | ({project} if project else set())),
        unknown_projects=state.pending_projects(),
        since=since,
        keep_bootstrap=state.has(EPHEMERAL) if destroying else True,
    )


def find(api: MetalApi, scan: Scan, state: Deployment) -> Leftovers:
    """Finds resources with the stack's tags, and projects that it created, which are not in its state.

    A spot market request may have a machine that is in no state yet.
    """
    known = state.ids()
    found = api.find(scan.projects, all_projects=bool(scan.unknown_projects))
    left = [
        each for each in found.resources if _is_ours(each, scan) and known.isdisjoint({each.id, each.request} - {""})
    ]
    left += [each for each in found.projects if each.name in scan.unknown_projects and each.id not in known]
    older = [each for each in left if _is_older(each.created, scan.since) or each.state == IN_USE]
    return Leftovers(resources=tuple(each for each in left if each not in older), older=tuple(older))


def clear(api: MetalApi, leftovers: Leftovers, say: Say) -> None:
    """Deletes leftovers and reports them; raises RecoveryFailed if one cannot be deleted."""
    for resource in leftovers.resources:
        say(f"deleting {resource}, which is in no state")
    api.delete(leftovers.resources, say)
    for resource in leftovers.older:
        say(f"left alone: {resource} carries this stack's name, but is older than the interrupted run, or in use")


def _is_ours(resource: Resource, scan: Scan) -> bool:
    marks = resource.marks
    if scan.keep_bootstrap and marks.get("role") == "bootstrap":
        return False
    named = (marks.get("stack"), marks.get("cluster")) == (scan.stack, scan.cluster)
    return named and marks.get("run") in (None, scan.run)


def _is_older(created: datetime | None, since: datetime | None) -> bool:
    return since is not None and (created is None or created < since - CLOCK_SKEW)
