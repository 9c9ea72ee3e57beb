"""The engine's Construct call: a program in another language makes a component, whose resources are made here.

The SDK's component host passes arguments on as they come. Ours converts them to what the components take: dataclasses,
with plain values if a component must know a value before it can declare anything.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyError
from pulumi.output import Unknown
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer

from metal_ipi.annotations import Shape, camel, fields, is_map, items, outputs, shape
from metal_ipi.exported import CLUSTER, COMPONENTS, Exported
from metal_ipi.provider.plugin import VERSION
from metal_ipi.stacks.problems import SECRET_NAMES, Problem, SettingsError

_REGISTERING = 1024
"""How many resources may be registered at once. Each occupies a thread until it is made, and may wait for others."""


async def construct(request: Any, context: Any, engine_address: str) -> Any:
    """Make the component of a request; returns once all its resources are made. Raises ValueError for an unknown
    type."""
    _let_many_register()
    if request.type not in COMPONENTS:
        known = ", ".join(sorted(COMPONENTS))
        raise ValueError(f"{request.type} is not a component of metal-ipi; known are {known}")
    return await _Host(request.type, engine_address).Construct(request, context)


@cache
def _let_many_register() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=_REGISTERING))


class _Host(ProviderServicer):
    """The SDK's host for one component."""

    def __init__(self, token: str, engine_address: str) -> None:
        exported = COMPONENTS[token]()
        super().__init__(_Maker(exported), [], engine_address)
        self._token, self._args = token, exported.args

    async def _construct_inputs(self, inputs: Any, input_dependencies: Any) -> Any:  # pyright: ignore
        given = await super()._construct_inputs(inputs, input_dependencies)
        if self._token == CLUSTER:
            return {"settings": await _known(given, "")}
        return await _members(self._args, given, "")


class _Maker(Provider):
    """The provider that the host calls; makes one component."""

    def __init__(self, exported: Exported) -> None:
        super().__init__(VERSION)
        self._exported = exported

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        args = dict(inputs)
        if "after" in {each.name for each in dataclasses.fields(self._exported.args)} and options is not None:
            args["after"] = options.depends_on or ()
        try:
            made = self._exported.component(name, self._exported.args(**args), options)
        except SettingsError as error:
            raise _refusal(error.problems) from None
        except ValueError as error:
            # A stream that cannot be fetched, or a file that cannot be read: show the message without a traceback.
            raise pulumi.RunError(str(error)) from error
        found = {camel(each): getattr(made, each) for each in outputs(self._exported.component)}
        return ConstructResult(
            urn=made.urn,
            state={
                key: pulumi.Output.from_input(value).apply(_wire) for key, value in found.items() if value is not None
            },
        )


def _refusal(problems: Sequence[Problem]) -> Exception:
    """An error with all problems, by property. The engine shows the values of properties named in an
    InputPropertiesError, so a RunError is used if one of them may be secret."""
    reasons = {problem.path.partition(":")[2]: f"{problem.why}; {problem.remedy}" for problem in problems}
    if any(SECRET_NAMES & set(path.split(".")) for path in reasons):
        return pulumi.RunError("".join(f"\n{path}: {reason}" for path, reason in reasons.items()))
    return InputPropertiesError(
        "nothing was changed", [{"property_path": path, "reason": reason} for path, reason in reasons.items()]
    )


async def _members(args: type, given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The arguments of a dataclass, by their names in Python. Raises InputPropertyError."""
    known = fields(args)
    for key in given:
        if key not in {each.wire for each in known}:
            raise InputPropertyError(_join(path, key), f"there is no such argument of {args.__name__}")
    for each in known:
        if each.required and given.get(each.wire) is None:
            raise InputPropertyError(_join(path, each.wire), "is required")
    return {
        each.name: await _value(each.shape, given[each.wire], _join(path, each.wire))
        for each in known
        if given.get(each.wire) is not None
    }


async def _value(wanted: Shape, given: Any, path: str) -> Any:
    """Convert a value to the type that the component takes. Raises InputPropertyError."""
    if not wanted.plain:
        if not any(map(_holds_data, wanted.kinds)):
            return given
        # A dataclass whose value is not known yet.
        return pulumi.Output.from_input(given).apply(lambda value: _value(_settled(wanted), value, path))
    given = await _opened(given)
    if isinstance(given, Unknown):
        raise _not_known(path)
    kind = _best(wanted.kinds, given)
    inner = items(kind)
    if isinstance(given, Mapping) and isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return kind(**await _members(kind, given, path))
    if isinstance(given, Mapping) and is_map(kind):
        # Sorted, because maps arrive in no fixed order.
        return {key: await _value(shape(inner), item, _join(path, key)) for key, item in sorted(given.items())}
    if isinstance(given, list) and inner is not None and not is_map(kind):
        return tuple([await _value(shape(inner), item, f"{path}[{number}]") for number, item in enumerate(given)])
    if kind is int and isinstance(given, float) and given.is_integer():
        return int(given)
    if kind is Any or (isinstance(kind, type) and isinstance(given, kind)):
        return given
    raise InputPropertyError(path, f"is of the wrong kind: {type(given).__name__}")


def _best(kinds: Sequence[Any], given: Any) -> Any:
    """The matching type among several: the dataclass with the most fields in common with the value."""
    if len(kinds) == 1 or not isinstance(given, Mapping):
        return kinds[0]
    return max(kinds, key=lambda kind: len({each.wire for each in fields(kind)} & given.keys()))


def _settled(wanted: Shape) -> Shape:
    return dataclasses.replace(wanted, plain=True)


def _holds_data(kind: Any) -> bool:
    inner = items(kind)
    return dataclasses.is_dataclass(kind) if inner is None else any(map(_holds_data, shape(inner).kinds))


async def _known(given: Any, path: str) -> Any:
    """The plain value, with everything inside it; whole numbers become int. Raises InputPropertyError if a part is
    unknown."""
    given = await _opened(given)
    if isinstance(given, Unknown):
        raise _not_known(path)
    if isinstance(given, Mapping):
        return {key: await _known(item, _join(path, key)) for key, item in sorted(given.items())}
    if isinstance(given, list):
        return [await _known(item, f"{path}[{number}]") for number, item in enumerate(given)]
    return int(given) if isinstance(given, float) and given.is_integer() else given


async def _opened(given: Any) -> Any:
    """The value of an output. Its members are outputs again, with the same dependencies and secretness as the whole."""
    if not isinstance(given, pulumi.Output):
        return given
    # With run_with_unknowns, unknown values arrive as Unknown objects.
    value = await given.apply(lambda whole: whole, run_with_unknowns=True).future(with_unknowns=True)

    def part(key: Any) -> pulumi.Output[Any]:
        return given.apply(lambda whole: whole[key], run_with_unknowns=True)

    if isinstance(value, Mapping):
        return {key: part(key) for key in value}
    return [part(number) for number in range(len(value))] if isinstance(value, list) else value


def _not_known(path: str) -> InputPropertyError:
    return InputPropertyError(
        path, "is not known yet, and nothing can be planned without it: it must not be an output of a resource"
    )


def _wire(value: Any) -> Any:
    """A value with the names that other languages use."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {camel(each.name): _wire(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
