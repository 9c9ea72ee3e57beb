"""How the inputs of a resource are declared: once, for programs, for the provider, and for provider/schema.json.

    class MirrorArgs(Inputs): files: GivenMap[LiveFileArgs] path_seed: Given[Secret[Seed]]

A program creates an instance with values, or with outputs of other resources. `to_wire` converts it for the engine:
camelCase names, without fields that are None, and with secrets marked. The provider reads the same class with
`problems`, `read` and `of_state`. `Given[T]` tells the type checker that a program may give `pulumi.Input[T]`, and that
the provider reads a `T`. A field that is not `Given` must be known when the program runs.

Values are validated only when they arrive in the provider, so programs in all languages get the same messages, and all
of them at once. Values from a state are never refused, because it may come from an earlier version.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pulumi
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.forms import PLACEHOLDER, wrong
from metal_ipi.provider.given import FLAT, LEFT_OUT, LOCAL, SECRET, Marker, Reading, pass_what_is_not_known, said

if TYPE_CHECKING:
    from typing import Self

    from pydantic import ModelWrapValidatorHandler, ValidatorFunctionWrapHandler
    from pydantic_core import ErrorDetails


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One wrong value."""

    path: str
    """Property path, `records[2].name`."""
    reason: str
    """What is wrong, and what to do."""


Conflict = tuple[tuple[str | int, ...], str]
"""The location as names and indices, and the reason."""


class Inputs(BaseModel):
    """The inputs of a resource, or a map in them."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        defer_build=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        str_min_length=1,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        """Problems between fields that are valid one by one.

        `given` has the fields with their protocol names, not validated: each may be wrong, or `Unknown`.
        """
        yield from ()

    @classmethod
    def problems(cls, values: Mapping[str, Any], path: str = "") -> list[Problem]:
        """All problems of a map from the engine."""
        try:
            cls.model_validate(values, context=Reading(lenient=False))
        except ValidationError as error:
            return [Problem(path=_path(each["loc"], path), reason=_reason(each)) for each in error.errors()]
        return []

    @classmethod
    def read(cls, values: Mapping[str, Any], path: str = "") -> Self:
        """Read a map from the engine. Raises InvalidInputs. Values that a preview does not know are `Unknown`."""
        try:
            return cls.model_validate(values, context=Reading(lenient=False))
        except ValidationError:
            problems = cls.problems(values, path)
            raise InvalidInputs("; ".join(f"{each.path} {each.reason}" for each in problems)) from None

    @classmethod
    def of_state(cls, values: Mapping[str, Any]) -> Self:
        """Read a map from a state. Fields that no longer exist are left out; missing fields are None."""
        return cls.model_validate(values, context=Reading(lenient=True))

    @classmethod
    def wire_names(cls) -> tuple[str, ...]:
        """The names of all fields in Pulumi's protocol."""
        return tuple(sorted(_names(cls)))

    def to_wire(self) -> dict[str, Any]:
        """The map for the engine."""
        found: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            value: Any = getattr(self, name)
            says = markers(type(self), name)
            empty = isinstance(value, (bool, list, tuple, dict)) and not value
            if value is None or LOCAL in says or (LEFT_OUT in says and empty):
                continue
            if FLAT in says:
                found |= _wire(value)
            else:
                plain = _wire(value)
                found[field.alias or name] = pulumi.Output.secret(plain) if SECRET in says else plain
        return found

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            if name is None or SECRET not in markers(type(self), name):
                yield name, value

    @field_validator("*", mode="wrap")
    @classmethod
    def _check_field(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return pass_what_is_not_known(value, handler, info)
        except ValidationError as error:
            numeric = {"float_type", "int_type"}
            if value == PLACEHOLDER and {each["type"] for each in error.errors()} <= numeric and info.field_name:
                return cls.model_fields[info.field_name].get_default()
            raise

    @model_validator(mode="wrap")
    @classmethod
    def _check_all(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        reading = info.context
        if not isinstance(reading, Reading) or isinstance(data, cls):
            return handler(data)
        if not isinstance(data, Mapping):
            raise wrong(f"must be a map, not {kind_of(data)}")
        names = _names(cls)
        given = {str(key): value for key, value in data.items() if value is not None and not str(key).startswith("__")}
        known = {key: value for key, value in given.items() if key in names}
        if reading.lenient:
            return handler(dict.fromkeys(_needed(cls)) | _nested(cls, known))
        found = [
            InitErrorDetails(type=wrong(not_known(key, names)), loc=(key,), input=None)
            for key in given
            if key not in names
        ]
        made = None
        try:
            made = handler(_nested(cls, known))
        except ValidationError as error:
            found += [_init_error(cls, each) for each in error.errors()]
        found += [InitErrorDetails(type=wrong(why), loc=where, input=None) for where, why in cls.conflicts(given)]
        if found or made is None:
            raise ValidationError.from_exception_data(cls.__name__, found)
        return made


def _wire(value: Any) -> Any:
    if isinstance(value, Inputs):
        return value.to_wire()
    if isinstance(value, Mapping):
        return {key: _wire(item) for key, item in value.items()}
    return [_wire(item) for item in value] if isinstance(value, (list, tuple)) else value


# --- declarations ---------------------------------------------------------------------------------------------------


@cache
def _hints(declared: type[Inputs]) -> dict[str, Any]:
    return get_type_hints(declared, include_extras=True)


@cache
def markers(declared: type[Inputs], name: str) -> frozenset[Marker]:
    """The markers of a field."""
    return frozenset(said(_hints(declared)[name]))


@cache
def _flat(declared: type[Inputs]) -> dict[str, type[Inputs]]:
    """The fields whose members are at the same level as the others: name → class."""
    found = {name: _hints(declared)[name] for name in declared.model_fields if FLAT in markers(declared, name)}
    return {name: get_args(annotation)[0] for name, annotation in found.items()}


@cache
def _names(declared: type[Inputs]) -> frozenset[str]:
    """The names of all members in Pulumi's protocol."""
    hidden = {name for name in declared.model_fields if {FLAT, LOCAL} & markers(declared, name)}
    own = {field.alias or name for name, field in declared.model_fields.items() if name not in hidden}
    return frozenset(own).union(*map(_names, _flat(declared).values()))


@cache
def _needed(declared: type[Inputs]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in declared.model_fields.items() if field.is_required())


def _nested(declared: type[Inputs], given: Mapping[str, Any]) -> dict[str, Any]:
    """Move members of flat fields into the fields where they are declared."""
    found = dict(given)
    for name, kind in _flat(declared).items():
        found[name] = {key: found.pop(key) for key in _names(kind) if key in found}
    return found


# --- messages -------------------------------------------------------------------------------------------------------


def _init_error(declared: type[Inputs], error: ErrorDetails) -> InitErrorDetails:
    """pydantic's error, in our words."""
    where = error["loc"]
    if where and where[0] in _flat(declared):
        where = where[1:]
    return InitErrorDetails(type=wrong(_reason(error)), loc=where, input=None)


def not_known(name: str, names: Iterable[str]) -> str:
    """The message for an unknown name, with the most similar known one."""
    near = difflib.get_close_matches(name, names, n=1)
    known = ", ".join(sorted(names)) or "none"
    return f"is not known; did you mean `{near[0]}`?" if near else f"is not known; known are {known}"


_WANTED = {
    "string_type": "a non-empty string",
    "string_too_short": "a non-empty string",
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a number",
    "tuple_type": "a list",
    "dict_type": "a map",
}


def _reason(error: ErrorDetails) -> str:
    """What is wrong. The value itself is never shown: it may be a secret in the wrong place."""
    kind = error["type"]
    if kind == "metal_ipi":
        return str(error.get("ctx", {})["reason"])
    if kind == "missing":
        return "is required"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {kind_of(error['input'])}"
    return f"is wrong: {error['msg']}"


def kind_of(value: Any) -> str:
    """The kind of a value, for messages."""
    if value == "":
        return "an empty string"
    names = {str: "a string", bool: "a boolean", float: "a number", int: "a number", list: "a list", dict: "a map"}
    return names.get(type(value), type(value).__name__)


def _path(location: Sequence[str | int], path: str) -> str:
    """A property path: `records[2].name`, `files["a b"].url`."""
    for each in location:
        if isinstance(each, int):
            path = f"{path}[{each}]"
        elif re.fullmatch(r"[\w-]+", each):
            path = f"{path}.{each}" if path else each
        else:
            path = f'{path}["{each}"]'
    return path
