"""Where two values differ, as property paths the engine can show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import DiffResponse, PropertyDiff, PropertyDiffKind

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_REPLACING = {
    PropertyDiffKind.ADD: PropertyDiffKind.ADD_REPLACE,
    PropertyDiffKind.DELETE: PropertyDiffKind.DELETE_REPLACE,
    PropertyDiffKind.UPDATE: PropertyDiffKind.UPDATE_REPLACE,
}


def _member(path: str, key: str) -> str:
    if not _NAME.fullmatch(key):
        quoted = key.replace("\\", "\\\\").replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key


def top(path: str) -> str:
    """The property a path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def differences(old: PropertyValue, new: PropertyValue, path: str) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Every place where they differ. A secret is one place: what changed within stays secret."""
    before, after = old.value, new.value
    if old == new:
        return
    if old.is_secret or new.is_secret:
        yield path, PropertyDiffKind.UPDATE
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from map_differences(before, after, path)
    elif (
        isinstance(before, Sequence)
        and isinstance(after, Sequence)
        and not isinstance(before, str)
        and not isinstance(after, str)
    ):
        for index in range(max(len(before), len(after))):
            place = f"{path}[{index}]"
            if index >= len(after):
                yield place, PropertyDiffKind.DELETE
            elif index >= len(before):
                yield place, PropertyDiffKind.ADD
            else:
                yield from differences(before[index], after[index], place)
    else:
        yield path, PropertyDiffKind.UPDATE


def map_differences(
    old: Mapping[str, PropertyValue], new: Mapping[str, PropertyValue], path: str = ""
) -> Iterator[tuple[str, PropertyDiffKind]]:
    """`differences` of two sets of properties; null is as good as absent."""
    for key in sorted(old.keys() | new.keys()):
        place = _member(path, key)
        before, after = old.get(key), new.get(key)
        if before is None or before.value is None:
            if after is not None and after.value is not None:
                yield place, PropertyDiffKind.ADD
        elif after is None or after.value is None:
            yield place, PropertyDiffKind.DELETE
        else:
            yield from differences(before, after, place)


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
