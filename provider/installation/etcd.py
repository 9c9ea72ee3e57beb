"""Whether etcd is whole: a control plane machine may hold what its Ready node says nothing of.

A machine that is installed again comes back without its data, and OpenShift's etcd does not start there while the
member that it was is still in etcd's list (discover-etcd-initial-cluster): somebody has to take it out of there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from provider.backoff import Backoff
from provider.errors import ProviderError
from provider.installation.inputs import Job
from provider.installation.install import Pace
from provider.installation.nodes import Cluster
from provider.status import Status

_PARTLY = re.compile(r"EtcdMembersAvailable: (\d+ of \d+ [^\n]*)")
"""The operator goes on to be Available while there is a quorum."""


async def trouble(cluster: Cluster, *, needed: Sequence[str] | None = None) -> str | None:
    """What etcd's operator tells of members that are missing; None where all are there, or there is no such operator.

    With `needed` nodes given, others may be missing while etcd is Available.
    """
    operator = await cluster.operator("etcd")
    if operator is None:
        return None
    found: Sequence[Mapping[str, Any]] = (operator.get("status") or {}).get("conditions") or []
    conditions = {str(each.get("type")): each for each in found}
    available, degraded = conditions.get("Available") or {}, conditions.get("Degraded") or {}
    text = f"{available.get('message') or ''}\n{degraded.get('message') or ''}"
    if available.get("status") != "True":
        return f"is not Available: {_line(available)}"
    if needed is not None and not any(name in text for name in needed):
        return None
    if partly := _PARTLY.search(str(available.get("message") or "")):
        return partly[1]
    return None if degraded.get("status") == "False" else f"is Degraded: {_line(degraded)}"


async def is_whole(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Waits until all members are there again."""
    backoff = Backoff(timeout=job.timeout, first=pace.look, longest=pace.look)
    while text := await trouble(cluster):
        if backoff.over:
            raise ProviderError(
                f"node {job.node} was installed and is Ready, but etcd is not whole after {job.timeout:g} s: {text}. "
                "The member that it was has to be taken out of etcd, with its secrets, before its new one can join "
                "(OpenShift's documentation: replacing an unhealthy etcd member). The node stays cordoned, and no "
                "other control plane machine is taken down; then the same command goes on"
            )
        await status.live(f"waiting for etcd ({text}), {backoff.elapsed:.0f} s")
        await backoff.pause()


def _line(condition: Mapping[str, Any]) -> str:
    return " ".join(str(condition.get("message") or "its operator does not tell why").split())
