"""The engine's values: to and from plain data, and where two of them differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import DiffResponse, PropertyDiff, PropertyDiffKind

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a value that a preview cannot know. The SDK's `PropertyValue` passes it through as a string."""

Json = Any
"""Plain data: None, bool, float, str, list, dict."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REPLACING = {kind: PropertyDiffKind[f"{kind.name}_REPLACE"] for kind in PropertyDiffKind if "_" not in kind.name}


def unknown() -> PropertyValue:
    """A value nobody knows before the update."""
    return PropertyValue(UNKNOWN)


def is_list(value: object) -> bool:
    """Whether it is a list of values."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def plain(value: PropertyValue) -> Json:
    """The data without secrets and dependencies; assets and references are passed through as they are."""
    inner: Any = value.value
    if isinstance(inner, Mapping):
        return plain_map(inner)  # pyright: ignore[reportUnknownArgumentType]
    return [plain(item) for item in inner] if is_list(inner) else inner


def plain_map(values: Mapping[str, PropertyValue]) -> dict[str, Json]:
    """`plain` for a set of properties."""
    return {key: plain(value) for key, value in values.items()}


def wrap(value: Json) -> PropertyValue:
    """Plain data as the engine wants it: every number a float."""
    if isinstance(value, dict):
        items: dict[str, Json] = value
        return PropertyValue(wrap_map(items))
    if isinstance(value, list):
        entries: list[Json] = value
        return PropertyValue([wrap(item) for item in entries])
    return PropertyValue(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def wrap_map(values: Mapping[str, Json]) -> dict[str, PropertyValue]:
    """`wrap` for a set of properties."""
    return {key: wrap(value) for key, value in values.items()}


def contains_unknown(value: PropertyValue) -> bool:
    """Whether any part of it is not known yet."""
    inner: Any = value.value
    if isinstance(inner, Mapping):
        return any(contains_unknown(item) for item in inner.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return any(contains_unknown(item) for item in inner) if is_list(inner) else inner == UNKNOWN


def top(path: str) -> str:
    """The property a path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def differences(
    old: Mapping[str, PropertyValue], new: Mapping[str, PropertyValue], path: str = ""
) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Every place where two sets of properties differ; null is as good as absent."""
    for key in sorted(old.keys() | new.keys()):
        if _NAME.fullmatch(key):
            place = f"{path}.{key}" if path else key
        else:
            place = path + '["{}"]'.format(key.replace("\\", "\\\\").replace('"', '\\"'))
        before, after = old.get(key), new.get(key)
        if before is None or before.value is None:
            if after is not None and after.value is not None:
                yield place, PropertyDiffKind.ADD
        elif after is None or after.value is None:
            yield place, PropertyDiffKind.DELETE
        else:
            yield from _within(before, after, place)


def _within(old: PropertyValue, new: PropertyValue, path: str) -> Iterator[tuple[str, PropertyDiffKind]]:
    """A secret is one place: what changed within stays secret."""
    before: Any = old.value
    after: Any = new.value
    if old == new:
        return
    if old.is_secret or new.is_secret:
        yield path, PropertyDiffKind.UPDATE
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from differences(before, after, path)  # pyright: ignore[reportUnknownArgumentType]
    elif is_list(before) and is_list(after):
        for index in range(max(len(before), len(after))):
            if index >= min(len(before), len(after)):
                yield f"{path}[{index}]", PropertyDiffKind.DELETE if index >= len(after) else PropertyDiffKind.ADD
            else:
                yield from _within(before[index], after[index], f"{path}[{index}]")
    else:
        yield path, PropertyDiffKind.UPDATE


def diff_response(found: Mapping[str, PropertyDiffKind], replaces: set[str]) -> DiffResponse:
    """The engine's answer; `replaces` holds the paths whose change takes a new resource."""
    return DiffResponse(
        changes=bool(found),
        diffs=sorted({top(path) for path in found}),
        replaces=sorted({top(path) for path in found if path in replaces}),
        detailed_diff={
            path: PropertyDiff(_REPLACING[kind] if path in replaces else kind, False) for path, kind in found.items()
        },
    )
