"""Labels and taints of nodes: ours are kept true, those of others stay."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.installation.nodes import Cluster, Unreachable
from metal_ipi.provider.node_marks import NodeMarks, patch
from metal_ipi.provider.resource import Context
from metal_ipi.provider.status import NoLog, Status
from metal_ipi.provider.types import NodeMarksOfNode

_TAINT = {"key": "a", "value": "x", "effect": "NoSchedule"}
_OTHERS = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _node(labels: dict[str, str], *taints: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "w", "labels": labels}, "spec": {"taints": list(taints)}}


@pytest.mark.parametrize(
    ("node", "before", "wanted", "change"),
    [
        (_node({"x": "1"}), {}, {"labels": {"x": "1"}}, {}),
        (
            _node({"x": "0", "other": "o"}, _OTHERS),
            {},
            {"labels": {"x": "1"}, "taints": [_TAINT]},
            {"metadata": {"labels": {"x": "1"}}, "spec": {"taints": [_OTHERS, _TAINT]}},
        ),
        (
            _node({"x": "1", "other": "o"}, _TAINT, _OTHERS),
            {"labels": {"x": "1"}, "taints": [_TAINT]},
            {},
            {"metadata": {"labels": {"x": None}}, "spec": {"taints": [_OTHERS]}},
        ),
        (
            _node({}, _TAINT),
            {"taints": [_TAINT]},
            {"taints": [{**_TAINT, "value": ""}]},
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        ),
        (_node({}, _TAINT), {"taints": [_TAINT]}, {}, {"spec": {"taints": None}}),
        (_node({}), {"labels": {"gone": "1"}, "taints": [_TAINT]}, {}, {}),
    ],
)
def test_only_what_is_named_is_changed(
    node: dict[str, Any], before: dict[str, Any], wanted: dict[str, Any], change: dict[str, Any]
) -> None:
    assert patch(node, before, wanted) == change


def test_labels_and_taints_may_have_no_value() -> None:
    """As `node-role.kubernetes.io/infra`."""
    node = {"name": "w.test", "labels": {"x": ""}, "taints": [{**_TAINT, "value": ""}]}
    assert NodeMarksOfNode.problems(node) == []
    assert [each.path for each in NodeMarksOfNode.problems({**node, "taints": [{**_TAINT, "key": ""}]})] == [
        "taints[0].key"
    ]


async def test_drift_is_read_and_a_node_that_is_gone_has_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"w": _node({"x": "other"}, _TAINT)}

    async def node(self: Cluster, name: str) -> dict[str, Any] | None:
        return there.get(name)

    monkeypatch.setattr(Cluster, "__init__", lambda self, values, patience: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Cluster, "node", node)
    context: Context = None  # pyright: ignore[reportAssignmentType] - reading needs none
    same = {"name": "w", "labels": {"x": "other"}, "taints": [_TAINT]}
    assert await NodeMarks().read(context, "id", {"credentials": {}, "nodes": [same]}) == {}
    drifted = {"name": "w", "labels": {"x": "1"}, "taints": [{**_TAINT, "value": "y"}]}
    gone = {"name": "v", "labels": {"x": "1"}}
    assert await NodeMarks().read(context, "id", {"credentials": {}, "nodes": [drifted, gone]}) == {
        "nodes": [{"name": "w", "labels": {"x": "other"}, "taints": []}, {"name": "v", "labels": {}}]
    }


async def test_without_the_clusters_api_the_state_is_believed_and_marks_may_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def node(self: Cluster, name: str) -> dict[str, Any] | None:
        raise Unreachable("its machines are off")

    monkeypatch.setattr(Cluster, "__init__", lambda self, values, patience: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Cluster, "node", node)
    context = Context(urn="urn", settings=Settings(), status=Status(NoLog(), "urn"), given_up=True)
    old = {"credentials": {}, "nodes": [{"name": "w", "labels": {"x": "1"}}]}
    assert await NodeMarks().read(context, "id", old) == {}
    await NodeMarks().delete(context, "id", old)
    with pytest.raises(Unreachable):
        await NodeMarks().update(context, "id", old, old)
