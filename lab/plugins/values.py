"""Between the engine's property values and plain Python data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.provider.experimental.property_value import PropertyValue

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a value that a preview cannot know. The SDK's `PropertyValue` passes it through as a string."""

Json = Any
"""Plain data: None, bool, float, str, list, dict."""


def unknown() -> PropertyValue:
    """A value nobody knows before the update."""
    return PropertyValue(UNKNOWN)


def plain(value: PropertyValue) -> Json:
    """The data without secrets and dependencies; assets and references are passed through as they are."""
    inner = value.value
    if isinstance(inner, Mapping):
        return {key: plain(item) for key, item in inner.items()}
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        return [plain(item) for item in inner]
    return inner


def plain_map(values: Mapping[str, PropertyValue]) -> dict[str, Json]:
    """`plain` for a set of properties."""
    return {key: plain(value) for key, value in values.items()}


def wrap(value: Json) -> PropertyValue:
    """Plain data as the engine wants it: every number a float."""
    if isinstance(value, dict):
        items: dict[str, Json] = value
        return PropertyValue({key: wrap(item) for key, item in items.items()})
    if isinstance(value, list):
        entries: list[Json] = value
        return PropertyValue([wrap(item) for item in entries])
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    return PropertyValue(value)


def wrap_map(values: Mapping[str, Json]) -> dict[str, PropertyValue]:
    """`wrap` for a set of properties."""
    return {key: wrap(value) for key, value in values.items()}


def contains_unknown(value: PropertyValue) -> bool:
    """Whether any part of it is not known yet."""
    inner = value.value
    if isinstance(inner, Mapping):
        return any(contains_unknown(item) for item in inner.values())
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        return any(contains_unknown(item) for item in inner)
    return inner == UNKNOWN


def is_asset(value: PropertyValue) -> bool:
    """Whether it is a file or an archive."""
    return isinstance(value.value, (pulumi.Asset, pulumi.Archive))
