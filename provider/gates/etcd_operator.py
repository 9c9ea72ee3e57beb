"""The members of etcd as etcd's operator reports them. Pure functions of its ClusterOperator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.gates.https import conditions_of

OPERATOR = "/apis/config.openshift.io/v1/clusteroperators/etcd"
_PARTLY = re.compile(r"EtcdMembersAvailable: (\d+ of \d+ [^\n]*)")
"""The operator stays Available as long as there is a quorum, so its message is needed too."""
_ALL = re.compile(r"EtcdMembersAvailable: (\d+) members are available")
"""The operator's message if all members in etcd's list are healthy (pkg/etcdcli/health.go, Status)."""


def trouble(operator: Mapping[str, Any], *, members: int, needed: Sequence[str] | None = None) -> str | None:
    """What the operator reports about missing members; None if all are healthy.

    `members` is the expected number: the operator does not complain about fewer. After a member was added, the operator
    rolls out a new revision and restarts all members one by one. With `needed`, only trouble with these nodes counts
    while etcd is Available.
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
    """The number of etcd's members, if all of them are healthy; otherwise None."""
    found = _ALL.search(str(conditions_of(operator).get("Available", {}).get("message") or ""))
    return int(found[1]) if found else None


def _line(condition: Mapping[str, Any]) -> str:
    return " ".join(str(condition.get("message") or "its operator gives no reason").split())
