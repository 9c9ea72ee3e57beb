"""Compares two rehearsals of a facility. Pure functions from data to data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from tools.preview_report.rehearsal import Rehearsal, Resource


@dataclass(frozen=True, kw_only=True)
class Change:
    """A resource that differs."""

    kind: Literal["added", "removed", "changed"]
    type: str
    name: str
    lines: tuple[tuple[str, str, str], ...]
    """Path in the inputs, value before, and value after; an empty text for a missing value."""


def changes(before: Rehearsal | None, after: Rehearsal | None) -> list[Change]:
    """The differing resources, removed ones first."""
    old, new = _by_urn(before), _by_urn(after)
    removed = [_change("removed", old[urn], _flat(old[urn]), {}) for urn in old.keys() - new.keys()]
    added = [_change("added", new[urn], {}, _flat(new[urn])) for urn in new.keys() - old.keys()]
    changed = [
        _change("changed", new[urn], _flat(old[urn]), _flat(new[urn]))
        for urn in old.keys() & new.keys()
        if _flat(old[urn]) != _flat(new[urn])
    ]
    return [*_sorted(removed), *_sorted(changed), *_sorted(added)]


def _by_urn(rehearsal: Rehearsal | None) -> dict[str, Resource]:
    return {resource.urn: resource for resource in rehearsal.resources} if rehearsal else {}


def _sorted(found: list[Change]) -> list[Change]:
    return sorted(found, key=lambda change: (change.type, change.name))


def _change(
    kind: Literal["added", "removed", "changed"], resource: Resource, old: Mapping[str, str], new: Mapping[str, str]
) -> Change:
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    lines = tuple((path, old.get(path, ""), new.get(path, "")) for path in paths)
    return Change(kind=kind, type=resource.type, name=resource.name, lines=lines)


def _flat(resource: Resource) -> dict[str, str]:
    return dict(_leaves(resource.inputs, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from _leaves(inner, f"{path}[{number}]")
    elif value is not None:
        yield path, str(value)
