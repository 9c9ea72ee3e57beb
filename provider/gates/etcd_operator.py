"""What etcd's operator says of the members of etcd. Pure functions of its ClusterOperator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.gates.https import conditions_of

OPERATOR = "/apis/config.openshift.io/v1/clusteroperators/etcd"
_PARTLY = re.compile(r"EtcdMembersAvailable: (\d+ of \d+ [^\n]*)")
"""The operator goes on to be Available while there is a quorum."""
_ALL = re.compile(r"EtcdMembersAvailable: (\d+) members are available")
"""The operator's words where each member that is in etcd's list is healthy (pkg/etcdcli/health.go, Status)."""


def trouble(operator: Mapping[str, Any], *, members: int, needed: Sequence[str] | None = None) -> str | None:
    """What it tells of members that are missing; None where all are there.

    `members` is how many there are to be: the operator finds nothing wrong with fewer. A new member is followed by a
    new revision, for which the operator restarts all of them, one after the other. With `needed` nodes given, others
    may be missing while etcd is Available.
    """
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


def _line(condition: Mapping[str, Any]) -> str:
    return " ".join(str(condition.get("message") or "its operator does not tell why").split())
