"""Resources as plain data, from a state or from the engine's events. Unknown and secret values are replaced by
texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pulumi.automation import EngineEvent
from pulumi.automation.events import StepEventMetadata

from tools.state import urn_name

Tree = Mapping[str, Any]
Change = Literal["create", "update", "replace", "delete", "same"]
CHANGES: tuple[Change, ...] = ("create", "update", "replace", "delete")
"""All changes but `same`, in display order."""

UNKNOWN = "known after up"
"""Replaces a value that is unknown until the resource exists."""
MASKED = "[secret]"
"""Replaces a secret."""
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  how the engine marks one (sdk/go/common/resource)
_SENTINELS = (
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
)
"""The engine's marks of an unknown asset, string, boolean, number, list and object (sdk/go/common/resource/plugin)."""
_CHANGES: Mapping[str, Change] = {
    "create": "create",
    "import": "create",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "delete": "delete",
    "discard": "delete",
}


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource: its future state, or the old state of one that will be deleted."""

    urn: str
    type: str
    id: str = ""
    """The platform's id; empty before it exists."""
    parent: str = ""
    """URN of its parent."""
    custom: bool = False
    """Whether it belongs to a provider; false for a component."""
    change: Change = "same"
    inputs: Tree = field(default_factory=dict[str, Any])
    outputs: Tree = field(default_factory=dict[str, Any])
    before: Tree = field(default_factory=dict[str, Any])
    """Its inputs before the operation."""

    @property
    def name(self) -> str:
        """The name in its URN."""
        return urn_name(self.urn)

    def text(self, *names: str) -> str:
        """The first of these outputs or inputs that has a value. For a new resource without a value: UNKNOWN."""
        for name in names:
            for tree in (self.outputs, self.inputs):
                if (value := tree.get(name)) not in (None, ""):
                    return str(value)
        return UNKNOWN if self.change in ("create", "replace") else ""


def of_state(resources: Iterable[Tree]) -> list[Resource]:
    """The resources in a state, without those that are waiting for deletion."""
    return [
        Resource(
            urn=str(each["urn"]),
            type=str(each["type"]),
            id=str(each.get("id") or ""),
            parent=str(each.get("parent") or ""),
            custom=bool(each.get("custom")),
            inputs=_tree(each.get("inputs")),
            outputs=_tree(each.get("outputs")),
        )
        for each in resources
        if not each.get("delete")
    ]


def of_events(events: Iterable[EngineEvent]) -> list[Resource]:
    """The resources after an operation, in the order of their first event."""
    found: dict[str, Resource] = {}
    for event in events:
        told = event.resource_pre_event or event.res_outputs_event
        if told is not None:
            metadata = told.metadata
            found[metadata.urn] = _from_metadata(metadata, found.get(metadata.urn))
    return list(found.values())


def _from_metadata(metadata: StepEventMetadata, known: Resource | None) -> Resource:
    """Updates a resource with one event. A replacement has several events; the new resource counts, not the old one."""
    change = _CHANGES.get(str(getattr(metadata.op, "value", metadata.op)), "same")
    if known is not None and known.change == "replace":
        change = "replace"
    old, new = metadata.old, metadata.new
    state = new or old
    if state is None or (new is None and known is not None):
        return known or Resource(urn=metadata.urn, type=metadata.type, change=change)
    outputs = _tree(state.outputs) or (known.outputs if known else {})
    if not outputs and old is not None and change in ("same", "update"):
        outputs = _tree(old.outputs)
    return Resource(
        urn=metadata.urn,
        type=metadata.type,
        id=state.id or "",
        parent=state.parent or "",
        custom=bool(state.custom),
        change=change,
        inputs=_tree(state.inputs),
        outputs=outputs,
        before=_tree(old.inputs) if old else (known.before if known else {}),
    )


def _tree(value: Tree | None) -> Tree:
    cleaned = clean(value or {})
    return cast(Tree, cleaned) if isinstance(cleaned, dict) else {}


def clean(value: object) -> object:
    """A value with `known after up` for unknown and `[secret]` for secret parts, at any depth."""
    if isinstance(value, str):
        return UNKNOWN if any(sentinel in value for sentinel in _SENTINELS) else value
    if isinstance(value, Mapping):
        tree = cast("Mapping[str, object]", value)
        if _SIGNATURE in tree:
            return MASKED if tree[_SIGNATURE] == _SECRET else UNKNOWN
        return {str(name): clean(each) for name, each in tree.items()}
    if isinstance(value, (list, tuple)):
        return [clean(each) for each in cast("list[object]", value)]
    return value


def mapping(tree: Tree, name: str) -> Tree:
    """A mapping inside another one; empty if it is unknown or no mapping."""
    value = tree.get(name)
    return cast(Tree, value) if isinstance(value, dict) else {}


def listed(tree: Tree, name: str) -> list[Any]:
    """A list inside a mapping; empty if it is unknown or no list."""
    value = tree.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []
