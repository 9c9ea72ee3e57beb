"""What an interrupted run left behind is found and cleared before the next one starts.

The engine writes down an operation before it begins it; when it is killed in the middle, it does not know whether the
machine was ordered. Machines and keys carry the stack's name, so they can be found: nothing can run on a machine that
no state knows, and it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tools.metal import MetalApi, Resource, Say
from tools.state import EPHEMERAL, Deployment

CLOCK_SKEW = timedelta(minutes=2)
"""How far the API's clock and ours may be apart."""
IN_USE = "in use"
"""The state of a project that holds machines."""


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """What carries the stack's name and is in no state."""

    resources: tuple[Resource, ...] = ()
    older: tuple[Resource, ...] = ()
    """Those that existed before the interrupted run began, or hold machines: others may know them."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """How to look for leftovers."""

    stack: str
    """The stack's name: a mark of what is its own."""
    cluster: str
    """The cluster's domain, a mark too: another team's stack may have the same name."""
    run: str | None
    """The state's run: what another run ordered is another checkout's. None: none has begun, and ordered anything."""
    projects: frozenset[str]
    """The projects to look into."""
    unknown_projects: frozenset[str]
    """Names of projects whose creation was interrupted."""
    since: datetime | None
    """When the interrupted run began; None: the project is the stack's own (the lab), everything counts."""
    keep_bootstrap: bool
    """Whether a bootstrap machine is left for its resource, which finds and adopts (or removes) it by its tags."""


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
    """What to look for; a destroy keeps the bootstrap machine only for a resource that removes it."""
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
    """Look for what carries the stack's name, and for projects of its own, that are not in its state.

    A request of the spot market may have got a machine of which no state knows yet.
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
    """Delete leftovers, and say which; raises RecoveryFailed when one does not go."""
    for resource in leftovers.resources:
        say(f"deleting {resource}: no state knows it")
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
