"""Runs a cluster's program as a preview, in this process, and records the resources that it declares.

The SDK passes every resource to a monitor, which is normally Pulumi's engine. This monitor answers as in a preview:
outputs of resources in the state are known, others are unknown. So there is one list of steps, `stacks.program`, both
for `up` and for the providers (docs/adr/0090).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import pulumi
from google.protobuf import empty_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime import mocks, settings
from pulumi.runtime import stack as runtime_stack
from pulumi.runtime.proto import resource_pb2

from metal_ipi.provider.values import secret_texts, to_python_map, to_wire_map
from metal_ipi.stacks.spare_time import Loop, declared

PROJECT = "metal-ipi"
_STACK = "pulumi:pulumi:Stack"
_logger = logging.getLogger(__name__)
_logger.addFilter(lambda record: record.levelno < logging.ERROR)  # what goes wrong is raised


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A resource that the program declares."""

    urn: str
    type: str
    name: str
    custom: bool
    """Whether it is a resource of a provider; false for a component."""
    inputs: Mapping[str, Any]
    """Inputs by their names on the wire; UNKNOWN for unknown values."""
    dependencies: tuple[str, ...]
    """The URNs of its dependencies."""
    ignored: tuple[str, ...]
    """Inputs whose changes are ignored."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Every text of its inputs that must never appear in a message."""


class Answers(Protocol):
    """Answers to the program's requests."""

    def resource(self, declared: Registered) -> tuple[str, Mapping[str, Any]]:
        """Id and outputs of a resource that is not a component; UNKNOWN where they are not known yet."""
        ...

    def call(self, token: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a function call."""
        ...


@dataclass
class _Monitor(mocks.MockMonitor):
    """The methods of the engine's monitor that a preview needs."""

    answers: Answers
    stack: str
    registered: list[Registered] = field(default_factory=list[Registered])
    trouble: Exception | None = None
    """The first error of a resource. The SDK wraps it in other errors, one per dependent resource."""

    def RegisterResource(self, request: Any) -> Any:
        urn = _urn(self.stack, request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        given = PropertyValue.unmarshal_map(request.object)
        declared = Registered(
            urn=urn,
            type=request.type,
            name=request.name,
            custom=bool(request.custom),
            inputs=to_python_map(given),
            dependencies=tuple(sorted(set(request.dependencies))),
            ignored=tuple(request.ignoreChanges),
            secrets=tuple(text for value in given.values() for text in secret_texts(value)),
        )
        try:
            identity, outputs = self.answers.resource(declared) if declared.custom else ("", {})
        except Exception as error:
            self.trouble = self.trouble or error
            raise
        self.registered.append(declared)
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=identity, object=PropertyValue.marshal_map(to_wire_map(outputs))
        )

    def Invoke(self, request: Any) -> Any:
        found = self.answers.call(request.tok, to_python_map(PropertyValue.unmarshal_map(request.args)))
        answer: dict[str, Any] = {"return": PropertyValue.marshal_map(to_wire_map(found))}
        return resource_pb2.ResourceInvokeResponse(**answer)

    def ReadResource(self, request: Any) -> Any:
        raise NotImplementedError(f"{request.type} cannot be read here: a cluster's program does not read resources")

    def RegisterResourceOutputs(self, request: Any) -> Any:
        return empty_pb2.Empty()


def _urn(stack: str, parent: str, kind: str, name: str) -> str:
    types = parent.split("::")[2] if parent else _STACK
    chain = kind if types == _STACK else f"{types}${kind}"
    return f"urn:pulumi:{stack}::{PROJECT}::{chain}::{name}"


def run(program: Callable[[], Any], answers: Answers, *, stack: str) -> tuple[list[Registered], dict[str, Any]]:
    """Run a program as a preview of a stack. Returns its declared resources, in an order in which they can be created,
    and the mapping that the program returns, with None for unknown values. Raises what the program raises. Blocks for a
    second. The SDK has state of a program that is global to the process, so only one may run at a time.
    """
    return contextvars.Context().run(_run, program, answers, stack)


def _run(program: Callable[[], Any], answers: Answers, stack: str) -> tuple[list[Registered], dict[str, Any]]:
    monitor = _Monitor(answers=answers, stack=stack)
    returned: dict[str, Any] = {}

    async def declare() -> None:
        returned.update(await declared(program))

    async def whole() -> dict[str, Any]:
        await runtime_stack.run_pulumi_func(declare)
        return {name: await _known(value) for name, value in returned.items()}

    loop = Loop()
    # When a program fails, each dependent output fails as well; one exception is raised, which is enough.
    loop.set_exception_handler(lambda _loop, context: _logger.debug(context["message"]))
    try:
        asyncio.set_event_loop(loop)
        cast(Any, settings).set_root_resource(None)
        mocks.set_mocks(cast(Any, None), project=PROJECT, stack=stack, preview=True, logger=_logger, monitor=monitor)
        pulumi.runtime.set_all_config({})
        outputs = loop.run_until_complete(whole())
    except Exception:
        if monitor.trouble is not None:
            raise monitor.trouble from None
        raise
    finally:
        settings._get_rpc_manager().clear()  # pyright: ignore[reportPrivateUsage]
        cast(Any, settings.SETTINGS).outputs.clear()
        asyncio.set_event_loop(None)
        loop.close()
    return monitor.registered, outputs


async def _known(value: Any) -> Any:
    output = pulumi.Output.from_input(value)
    return await output.future() if await output.is_known() else None
