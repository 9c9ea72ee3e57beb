"""Inputs described as data, and checked against the description: one message per problem, all at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pulumi
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import NotInTheLab, Properties
from lab.plugins.values import UNKNOWN, Json, plain, wrap

Kind = Literal["string", "integer", "number", "boolean", "list", "map", "object", "any"]
_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": float,
    "number": float,
    "boolean": bool,
    "list": Sequence,
    "map": Mapping,
    "object": Mapping,
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One input of a resource."""

    kind: Kind = "string"
    element: Field | None = None
    """What a list or map holds; anything if None."""
    fields: Mapping[str, Field] = field(default_factory=dict[str, "Field"])
    """What an object holds."""
    required: bool = False
    default: Json = None
    """Filled in when absent."""
    secret: bool = False
    """Encrypted in the state whatever the program says."""
    replace: bool = False
    """Whether a change takes a new resource."""
    choices: Sequence[str] = ()
    """The values it may have; any if empty."""
    only: Sequence[Json] = ()
    """The values that the stand-in implements; others are refused by name. Any if empty."""
    absent: bool = False
    """Whether the official plug-in has it and the stand-in refuses it by name."""


TEXT = Field()
TEXTS = Field(kind="list", element=TEXT)
ABSENT = Field(kind="any", absent=True)


def problems(
    plugin: str, fields: Mapping[str, Field], values: Mapping[str, PropertyValue], path: str = ""
) -> Iterator[CheckFailure]:
    """What is wrong with the values: unknown names, missing ones, wrong types, values outside the choices.

    Raises NotInTheLab for what only the official plug-in implements.
    """
    for name in values.keys() - fields.keys():
        if name.startswith("__") or (name == "version" and not path):
            continue
        near = difflib.get_close_matches(name, fields, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(fields))}"
        yield CheckFailure(f"{path}{name}", f"{path}{name} is not an input of this resource; {remedy}")
    for name, known in fields.items():
        value = values.get(name)
        if value is None or value.value is None:
            if known.required:
                yield CheckFailure(f"{path}{name}", f"{path}{name} is required and missing")
        elif known.absent or (known.only and value.value not in (*known.only, UNKNOWN)):
            raise NotInTheLab(plugin, f"the input {path}{name}" + ("" if known.absent else f" {plain(value)}"))
        else:
            yield from _field_problems(plugin, known, value, f"{path}{name}")


def _field_problems(plugin: str, known: Field, value: PropertyValue, path: str) -> Iterator[CheckFailure]:
    inner = value.value
    if inner == UNKNOWN or known.kind == "any":
        return
    fits = isinstance(inner, _TYPES[known.kind]) and not (known.kind == "list" and isinstance(inner, str))
    if known.kind == "integer" and isinstance(inner, float):
        fits = inner.is_integer()
    if not fits or isinstance(inner, (pulumi.Asset, pulumi.Archive)):
        yield CheckFailure(path, f"{path} must be of type {known.kind}, not {value.type.value.lower()}")
    elif known.choices and inner not in known.choices:
        yield CheckFailure(path, f"{path} must be one of {', '.join(known.choices)}, not {inner}")
    elif isinstance(inner, Mapping):
        if known.kind == "object":
            yield from problems(plugin, known.fields, inner, f"{path}.")
        elif known.element is not None:
            for key, item in inner.items():
                yield from _field_problems(plugin, known.element, item, f"{path}.{key}")
    elif isinstance(inner, Sequence) and not isinstance(inner, str) and known.element is not None:
        for index, item in enumerate(inner):
            yield from _field_problems(plugin, known.element, item, f"{path}[{index}]")


def with_defaults(fields: Mapping[str, Field], values: Mapping[str, PropertyValue]) -> Properties:
    """The values with defaults filled in and secrets marked, in objects too; the names that were filled in are recorded
    as `__defaults`, as the Terraform bridge does and wants."""
    result = {name: value for name, value in values.items() if name != "__defaults"}
    filled: list[str] = []
    for name, known in fields.items():
        if known.default is not None and (name not in result or result[name].value is None):
            result[name] = wrap(known.default)
            filled.append(name)
        if name in result:
            result[name] = _deepen(known, result[name])
    result["__defaults"] = wrap(sorted(filled))
    return result


def _deepen(known: Field, value: PropertyValue) -> PropertyValue:
    inner = value.value
    if known.kind == "object" and isinstance(inner, Mapping):
        value = value.with_value(with_defaults(known.fields, inner))
    elif known.element is not None and isinstance(inner, Sequence) and not isinstance(inner, str):
        element = known.element
        value = value.with_value([_deepen(element, item) for item in inner])
    return value.with_secret(True) if known.secret else value
