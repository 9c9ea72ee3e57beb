"""Converts between property values on the wire and plain Python values.

Inside the provider values are plain: None, bool, float, str, lists and dicts. `UNKNOWN` stands for a value that a
preview does not know yet, and `Secret` marks a secret output. The SDK represents an unknown value as a magic string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_THE_WIRE


class Unknown:
    """A value that is not known in a preview. It is not equal to anything, itself included, because the real value may
    differ."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Secret:
    """An output that is encrypted in the state."""

    value: Any


def to_python(value: PropertyValue) -> Any:
    """The plain value; the secret mark is lost."""
    inner = value.value
    if isinstance(inner, Computed) or inner == UNKNOWN_ON_THE_WIRE:
        return UNKNOWN
    if inner is None or isinstance(inner, (bool, float, str)):
        return inner
    if isinstance(inner, Mapping):
        return {key: to_python(item) for key, item in inner.items()}
    if isinstance(inner, Sequence):
        return [to_python(item) for item in inner]
    raise TypeError(f"assets, archives and resources are not taken here, but got {type(inner).__name__}")


def to_wire(value: Any) -> PropertyValue:
    """The wire form of a plain value. A PropertyValue is returned unchanged, with its secret mark."""
    if isinstance(value, PropertyValue):
        return value
    if isinstance(value, Secret):
        return to_wire(value.value).with_secret(True)
    if isinstance(value, Unknown):
        return PropertyValue(UNKNOWN_ON_THE_WIRE)
    if isinstance(value, Mapping):
        return PropertyValue({str(key): to_wire(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return PropertyValue([to_wire(item) for item in value])
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    return PropertyValue(value)


def to_python_map(values: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """The plain values of a property map, without the engine's own `__` keys."""
    return {key: to_python(value) for key, value in values.items() if not key.startswith("__")}


def to_wire_map(values: Mapping[str, Any]) -> dict[str, PropertyValue]:
    """The wire form of a map of plain values."""
    return {key: to_wire(value) for key, value in values.items()}


def has_unknown(value: Any) -> bool:
    """Whether the value is, or contains, an unknown value."""
    if isinstance(value, Unknown):
        return True
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(item) for item in value)
    return False


def secret_texts(value: PropertyValue, *, inside: bool = False) -> Iterator[str]:
    """Yields all texts inside secret values: they must never appear in a message."""
    inside = inside or value.is_secret
    inner = value.value
    if isinstance(inner, str):
        if inside:
            yield inner
    elif isinstance(inner, Mapping):
        for item in inner.values():
            yield from secret_texts(item, inside=inside)
    elif isinstance(inner, Sequence):
        for item in inner:
            yield from secret_texts(item, inside=inside)
