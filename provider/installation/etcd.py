"""Whether etcd is whole: a control plane machine may hold what its Ready node says nothing of.

A machine that is installed again comes back without its data, and OpenShift's etcd does not start there while the
member that it was is still in etcd's list: that one is taken out before (`etcd_member`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.https import conditions_of
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.install import Pace
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.status import Status

NAMESPACE, CONTAINER = "openshift-etcd", "etcdctl"
"""Of etcd's pods, and in them of the container that has etcdctl and the variables that it reads."""
_PARTLY = re.compile(r"EtcdMembersAvailable: (\d+ of \d+ [^\n]*)")
"""The operator goes on to be Available while there is a quorum."""
_ALL = re.compile(r"EtcdMembersAvailable: (\d+) members are available")
"""The operator's words where each member that is in etcd's list is healthy (pkg/etcdcli/health.go, Status)."""


async def trouble(cluster: Cluster, *, members: int, needed: Sequence[str] | None = None) -> str | None:
    """What etcd's operator tells of members that are missing; None where all are there, or there is no such operator.

    `members` is how many there are to be: the operator finds nothing wrong with fewer. A new member is followed by a
    new revision, for which the operator restarts all of them, one after the other. With `needed` nodes given, others
    may be missing while etcd is Available.
    """
    operator = await cluster.operator("etcd")
    if operator is None:
        return None
    conditions = conditions_of(operator)
    available, degraded = conditions.get("Available") or {}, conditions.get("Degraded") or {}
    text = f"{available.get('message') or ''}\n{degraded.get('message') or ''}"
    if available.get("status") != "True":
        return f"is not Available: {_line(available)}"
    if needed is not None and not any(name in text for name in needed):
        return None
    if partly := _PARTLY.search(str(available.get("message") or "")):
        return partly[1]
    if needed is None and (count := members_available(operator)) is not None and count < members:
        return f"it has {count} members, and should have {members}"
    progressing = conditions.get("Progressing") or {}
    if needed is None and progressing.get("status") == "True":
        return f"is being restarted member by member: {_line(progressing)}"
    return None if degraded.get("status") == "False" else f"is Degraded: {_line(degraded)}"


def members_available(operator: Mapping[str, Any] | None) -> int | None:
    """How many members etcd has, where each of them is healthy."""
    found = _ALL.search(str(conditions_of(operator).get("Available", {}).get("message") or ""))
    return int(found[1]) if found else None


async def is_whole(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Waits until all members are there again."""
    backoff = pace.looks(job.timeout_seconds)
    while text := await trouble(cluster, members=len(job.members)):
        too_long = ProviderError(
            f"node {job.node} was installed and is Ready, but etcd is not whole after {job.timeout_seconds:g} s: "
            f"{text}. No other control plane machine is taken down. Look at "
            f"`oc logs --namespace={NAMESPACE} --container=etcd etcd-{job.node}`. Where it says that its data has "
            f"been destroyed, its former member is still in etcd and has to be taken out:\n{by_hand(job)}\n"
            "Then the same command goes on"
        )
        await backoff.wait_for(f"etcd ({text})", status.live, too_long)


def secret_names(job: Job) -> tuple[str, ...]:
    """The Secrets that hold the certificates of a node's member."""
    return tuple(f"{prefix}-{job.node}" for prefix in ("etcd-peer", "etcd-serving", "etcd-serving-metrics"))


def by_hand(job: Job, member: str = "") -> str:
    """The commands that take the machine's member out of etcd, to be pasted; with its id where that is known."""
    other = next((each for each in job.members if each != job.node), "OTHER-NODE")
    etcdctl = f"oc rsh --namespace={NAMESPACE} --container={CONTAINER} etcd-{other} etcdctl member"
    return "\n".join(
        (
            f"  {etcdctl} list -w table",
            f"  {etcdctl} remove {member or f'ID  # that of {job.node} in this list'}",
            f"  oc delete secret --namespace={NAMESPACE} --ignore-not-found {' '.join(secret_names(job))}",
        )
    )


def _line(condition: Mapping[str, Any]) -> str:
    return " ".join(str(condition.get("message") or "its operator does not tell why").split())
