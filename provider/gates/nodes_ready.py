"""nodes-ready: every named node is Ready. On the way their certificate requests are approved, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from provider.gates import Check, Observation, Spec
from provider.gates.approvals import Approvals, Approver
from provider.gates.https import Answer, Api, same_cluster
from provider.resource import Context

_NODES = "/api/v1/nodes"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Only names which are new, or are another machine's now, are waited for."""
    passed = dict[str, str]()
    if old is not None and same_cluster(spec, old):
        machines = _machines(old)
        passed = {name: machines.get(name, "") for name in old.get("names") or ()}
    machines = _machines(spec)
    pending = [name for name in spec["names"] if passed.get(name) != machines.get(name, "")]
    return NodesReady(spec, pending) if pending else None


def _machines(spec: Spec) -> dict[str, str]:
    """Name of a node → the platform's id of its machine, where the specification tells it."""
    return {str(node["name"]): str(node.get("machineId") or "") for node in spec.get("nodes") or ()}


class NodesReady:
    """See `Check`."""

    def __init__(self, spec: Spec, pending: Sequence[str]) -> None:
        self._api = Api(spec)
        self._pending = tuple(pending)
        self._addresses: Mapping[str, Sequence[str]] = spec.get("addresses") or {}
        self._approver = Approver(self._api, spec)

    async def look(self, elapsed: float) -> Observation:
        nodes, approvals = await asyncio.gather(self._api.get(_NODES), self._approver.look())
        return evaluate(nodes, self._pending, self._addresses, approvals)


def evaluate(
    answer: Answer,
    names: Sequence[str],
    addresses: Mapping[str, Sequence[str]],
    approvals: Approvals = Approvals(),  # noqa: B008  it is frozen
) -> Observation:
    """Which of the names are not Ready, and why."""
    if answer.problem:
        return Observation(passed=False, text=answer.problem, waiting=tuple(names))
    nodes = {str(item["metadata"]["name"]): item for item in answer.body.get("items") or []}
    missing = {name: why for name in names if (why := _not_ready(nodes.get(name), addresses.get(name, ())))}
    if missing:
        text = "; ".join([", ".join(f"{name} ({why})" for name, why in missing.items()), *approvals.notes])
        return Observation(passed=False, text=text, waiting=tuple(missing))
    return Observation(passed=True, text="; ".join([f"Ready: {', '.join(names)}", *approvals.notes]))


def _not_ready(node: Mapping[str, Any] | None, addresses: Sequence[str]) -> str | None:
    if node is None:
        return "has not joined"
    status: Mapping[str, Any] = node.get("status") or {}
    # A machine that took another's name finds that one's object, which says Ready until somebody misses its kubelet.
    internal = {str(item["address"]) for item in status.get("addresses") or [] if item.get("type") == "InternalIP"}
    if addresses and internal and not internal & set(addresses):
        return f"the node of this name is another machine's still, at {', '.join(sorted(internal))}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Ready":
            ready = str(condition.get("status"))
            return None if ready == "True" else f"Ready={ready} {condition.get('message') or ''}".strip()
    return "has no Ready condition"
