"""Reads the annotations of arguments and outputs, for the schema and for arguments from other languages."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pulumi

from metal_ipi.provider.given import GIVEN, SECRET, said
from metal_ipi.provider.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The parts of one annotation."""

    kinds: tuple[Any, ...]
    """The possible types, such as `str`, `Sequence[str]` or a dataclass; one or several."""
    optional: bool
    """Whether it may be None."""
    plain: bool
    """Whether the value must be known: an output is not allowed."""
    secret: bool = False
    """Whether it is declared as a secret."""


def shape(annotation: Any) -> Shape:
    """Take an annotation apart: `T`, `T | None`, `pulumi.Input[T]`, `pulumi.Output[T]`, `Given[T]`, `A | B`."""
    members, markers = list(_members(annotation)), set(said(annotation))
    outputs = [member for member in members if _is_output(member)]
    kinds = [member for member in members if member not in outputs and get_origin(member) is not Awaitable]
    if not [kind for kind in kinds if kind is not types.NoneType]:  # only an output: `pulumi.Output[T]`
        kinds += [inner for output in outputs for inner in _members(get_args(output)[0])]
    return Shape(
        kinds=tuple(kind for kind in kinds if kind is not types.NoneType),
        optional=types.NoneType in kinds,
        plain=not outputs and GIVEN not in markers,
        secret=SECRET in markers,
    )


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    elif get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) is Awaitable or annotation is Awaitable:
        yield Awaitable[Any]
    else:
        yield annotation


def _is_output(annotation: Any) -> bool:
    return annotation is pulumi.Output or get_origin(annotation) is pulumi.Output


@dataclass(frozen=True, kw_only=True)
class Field:
    """An argument."""

    name: str
    """Its name in Python."""
    wire: str
    """Its name in other languages."""
    shape: Shape
    required: bool


def fields(args: type) -> list[Field]:
    """The arguments that other languages can give; not those that take Python objects."""
    hints = hints_of(args)
    found: list[Field] = []
    if issubclass(args, Inputs):
        return [
            Field(name=name, wire=each.alias or name, shape=shape(hints[name]), required=each.is_required())
            for name, each in args.model_fields.items()
        ]
    for each in dataclasses.fields(args):
        its = shape(hints[each.name])
        if any(map(_is_of_python, its.kinds)):
            continue
        given = each.default is not dataclasses.MISSING or each.default_factory is not dataclasses.MISSING
        found.append(Field(name=each.name, wire=camel(each.name), shape=its, required=not given))
    return found


def hints_of(item: Any) -> dict[str, Any]:
    """The annotations of a class or a function, resolved."""
    # Annotations in Pulumi's SDK refer to each other as text, so its names are needed too.
    return get_type_hints(item, localns={**vars(pulumi), "T": Any}, include_extras=True)


def outputs(component: type) -> dict[str, Any]:
    """The outputs of a component or resource (attributes and properties), by their names in Python."""
    found = {name: hint for name, hint in hints_of(component).items() if not name.startswith("_")}
    for parent in reversed(component.__mro__):
        for name, item in vars(parent).items():
            if isinstance(item, property) and not name.startswith("_") and item.fget is not None:
                found[name] = hints_of(item.fget).get("return")
    foreign = {*dir(pulumi.CustomResource), *hints_of(pulumi.CustomResource)}
    return {name: hint for name, hint in found.items() if name not in foreign and any(map(_is_output, _members(hint)))}


def items(kind: Any) -> Any:
    """The element type of a list or map type; None for another type."""
    origin = get_origin(kind)
    if not isinstance(origin, type):
        return None
    if issubclass(origin, Mapping):
        return get_args(kind)[1]
    return get_args(kind)[0] if issubclass(origin, Sequence) else None


def is_map(kind: Any) -> bool:
    """Whether the type is a map."""
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_of_python(kind: Any) -> bool:
    inner = items(kind)
    if inner is not None and get_origin(kind) is tuple:
        rest = get_args(kind)[1:]
        if rest != (Ellipsis,):
            return True
    if inner is not None:
        return any(map(_is_of_python, shape(inner).kinds))
    return isinstance(kind, type) and issubclass(kind, pulumi.Resource | Path)


def camel(name: str) -> str:
    """A Python name in camelCase, as other languages use it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
