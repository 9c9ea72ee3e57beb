"""NodeMarks: labels and taints of nodes.

Ownership is by key: keys that are neither inputs nor in the state belong to others, and are not changed.

Life cycle: create and update set the inputs on each node, and remove keys that are in the state but no longer inputs; a
node that is gone is skipped. read reports which of them exist, so that the next up sets missing ones. delete removes
all of them, unless the cluster is deleted too. If the API cannot be reached, read keeps the state, delete leaves the
keys on the nodes, and both report that.

Killed at any moment: each node is changed in one request, and what is set already is not written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.installation.nodes import Cluster, Unreachable
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.node_marks import NodeMarksArgs

_PATIENCE = 300.0
"""Seconds for retries: while the API does not answer, or while others change a node at the same time."""

_Node = Mapping[str, Any]


class NodeMarks(ResourceType):
    """Labels and taints of nodes."""

    token = "metal-ipi:index:NodeMarks"  # noqa: S105 - a type token
    inputs = NodeMarksArgs
    found_by_inputs = True

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        # The credentials are not compared: other credentials do not change the marks.
        return simple_changes(old, new, ("nodes",))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {}

    async def create(self, context: Context, inputs: Values) -> Made:
        await _Work(context, inputs).bring({}, _by_name(inputs))
        return Made(id=context.identity, outputs={})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        await _Work(context, new).bring(_by_name(old), _by_name(new))
        return {}

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        cluster = Cluster(old["credentials"], patience=_PATIENCE)
        seen: list[_Node] = []
        try:
            for each in old["nodes"]:
                node = await cluster.node(each["name"])
                seen.append(_seen(each, node or {}))
        except Unreachable as error:
            await context.status.remark(f"labels and taints are assumed to be unchanged: {error}")
            return {}
        return {} if seen == list(old["nodes"]) else {"nodes": seen}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        if not context.given_up:
            return
        try:
            await _Work(context, old).bring(_by_name(old), {})
        except Unreachable as error:
            await context.status.remark(f"labels and taints stay on the nodes: {error}")


class _Work:
    """One operation on a cluster's nodes."""

    def __init__(self, context: Context, values: Values) -> None:
        self._context, self._cluster = context, Cluster(values["credentials"], patience=_PATIENCE)

    async def bring(self, before: Mapping[str, _Node], wanted: Mapping[str, _Node]) -> None:
        """Change the nodes from the old marks to the wanted ones. Raises RemoteError."""
        for name in {**before, **wanted}:
            await self._context.status.live(f"labels and taints of {name}")
            await self._bring(name, before.get(name, {}), wanted.get(name, {}))

    async def _bring(self, name: str, before: _Node, wanted: _Node) -> None:
        backoff = Backoff(timeout=_PATIENCE)
        while True:
            node = await self._cluster.node(name)
            if node is None:
                if wanted:
                    raise RemoteError(f"node {name} is not in the cluster; check that its machine runs (`make up`)")
                return
            change = patch(node, before, wanted)
            if not change or await self._cluster.patch_node(node, change):
                return
            changed = RemoteError(f"node {name} is constantly changed by other programs", passing=True)
            await backoff.wait_for(f"node {name}, which other programs change", self._context.status.live, changed)


def patch(node: Mapping[str, Any], before: _Node, wanted: _Node) -> dict[str, Any]:
    """The merge patch for a Node object; empty if nothing must change."""
    labels: Mapping[str, str] = (node.get("metadata") or {}).get("labels") or {}
    gone = {key for key in before.get("labels") or {} if key in labels}
    changed: dict[str, str | None] = dict.fromkeys(gone - set(wanted.get("labels") or {}))
    changed |= {key: value for key, value in (wanted.get("labels") or {}).items() if labels.get(key) != value}
    present: Sequence[Mapping[str, Any]] = (node.get("spec") or {}).get("taints") or ()
    ours = {_identity(taint) for taint in (*(before.get("taints") or ()), *(wanted.get("taints") or ()))}
    kept = [taint for taint in present if _identity(taint) not in ours]
    here = [taint for taint in present if _identity(taint) in ours]
    new = [_taint(taint) for taint in wanted.get("taints") or ()]
    result: dict[str, Any] = {"metadata": {"labels": changed}} if changed else {}
    if sorted(map(_taint_id, here)) != sorted(map(_taint_id, new)):
        result["spec"] = {"taints": [*kept, *new] or None}
    return result


def _seen(wanted: _Node, node: Mapping[str, Any]) -> _Node:
    """The part of the wanted marks that is on the node."""
    labels = (node.get("metadata") or {}).get("labels") or {}
    taints = {_taint_id(taint) for taint in (node.get("spec") or {}).get("taints") or ()}
    found = {
        "labels": {key: labels[key] for key in wanted.get("labels") or {} if key in labels},
        "taints": [taint for taint in wanted.get("taints") or () if _taint_id(taint) in taints],
    }
    return {**wanted, **{name: value for name, value in found.items() if name in wanted}}


def _by_name(values: Values) -> dict[str, _Node]:
    return {str(node["name"]): node for node in values["nodes"]}


def _identity(taint: Mapping[str, Any]) -> tuple[str, str]:
    return str(taint["key"]), str(taint["effect"])


def _taint_id(taint: Mapping[str, Any]) -> tuple[str, str, str]:
    return (*_identity(taint), str(taint.get("value") or ""))


def _taint(taint: Mapping[str, Any]) -> dict[str, str]:
    """A taint in the API's form."""
    key, effect, value = _taint_id(taint)
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
