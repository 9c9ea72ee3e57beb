"""Calls the provider the way the engine does, without an engine: plain values in, plain values out.

Keeps each resource's state as the engine would, and keeps the state of a failed creation too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider import configuration
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InitFailed
from metal_ipi.provider.plugin import MetalIpiProvider
from metal_ipi.provider.values import to_python_map, to_wire_map

_Test = TypeVar("_Test", bound=Callable[..., Coroutine[Any, Any, None] | None])


def kills(test: _Test) -> _Test:
    """Marks a test that cancels a run wherever it is.

    httpcore and asyncssh leave a socket open where they are cancelled just after they got it; a real kill closes it. It
    is collected with this test, and not in somebody else's. Every other exception that cannot be raised fails the test.
    """
    leaks = r"Exception ignored in. <(socket\.socket|function _SelectorTransport\.__del__)"
    ignored = pytest.mark.filterwarnings(f"ignore:{leaks}:pytest.PytestUnraisableExceptionWarning")
    return ignored(pytest.mark.usefixtures("collected")(test))


class RecordedLog:
    """Keeps what would have been sent to the engine."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.warnings: list[str] = []

    async def send(
        self, message: str, *, urn: str, ephemeral: bool, debug: bool = False, warning: bool = False
    ) -> None:
        self.messages.append(message)
        if warning:
            self.warnings.append(message)


@dataclass
class Harness:
    """A configured provider."""

    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log: RecordedLog = field(default_factory=RecordedLog)

    def __post_init__(self) -> None:
        self.provider = MetalIpiProvider(self.log)

    async def configure(self) -> None:
        args = to_wire_map({key: json.dumps(value) for key, value in self.config.items()})
        failures = (await self.provider.check_config(sdk.CheckRequest("", {}, args, b""))).failures
        assert not failures, [f"{failure.property} {failure.reason}" for failure in failures]
        await self.provider.configure(sdk.ConfigureRequest({}, args, accept_secrets=True, accept_resources=True))


@dataclass
class Resource:
    """One resource and its state."""

    harness: Harness
    type: str
    name: str = "it"
    stack: str = "test"
    id: str = ""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Those of the last `up`."""

    @property
    def old(self) -> dict[str, Any]:
        """What is old, as the server hands it on."""
        return to_wire_map({**self.inputs, **self.state})

    @property
    def urn(self) -> str:
        return f"urn:pulumi:{self.stack}::metal-ipi::metal-ipi:index:{self.type}::{self.name}"

    async def check(self, inputs: Mapping[str, Any]) -> list[str]:
        answer = await self.harness.provider.check(sdk.CheckRequest(self.urn, {}, to_wire_map(inputs), b""))
        return [f"{failure.property} {failure.reason}" for failure in answer.failures or []]

    async def preview(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if self.id:
            request = sdk.UpdateRequest(self.urn, self.id, self.old, to_wire_map(inputs), 0, [], preview=True)
            return to_python_map((await self.harness.provider.update(request)).properties)
        answer = await self.harness.provider.create(sdk.CreateRequest(self.urn, to_wire_map(inputs), 0, preview=True))
        return to_python_map(answer.properties)

    async def diff(self, inputs: Mapping[str, Any]) -> sdk.DiffResponse:
        request = sdk.DiffRequest(self.urn, self.id, self.old, to_wire_map(inputs), [])
        return await self.harness.provider.diff(request)

    async def changes(self, inputs: Mapping[str, Any]) -> list[str]:
        return sorted((await self.diff(inputs)).detailed_diff)

    async def up(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Check, then create or update; what was made is kept when it fails."""
        assert not (problems := await self.check(inputs)), problems
        provider, wire = self.harness.provider, to_wire_map(inputs)
        try:
            if self.id:
                request = sdk.UpdateRequest(self.urn, self.id, self.old, wire, 0, [], preview=False)
                self.state = to_python_map((await provider.update(request)).properties)
            else:
                made = await provider.create(sdk.CreateRequest(self.urn, wire, 0, preview=False))
                assert made.resource_id
                self.id, self.state = made.resource_id, to_python_map(made.properties)
        except InitFailed as error:
            self.id, self.state = error.resource_id, to_python_map(to_wire_map(error.outputs))
            self.inputs = inputs
            raise
        self.inputs = inputs
        return self.state

    async def refresh(self) -> None:
        request = sdk.ReadRequest(self.urn, self.id, to_wire_map(self.state), to_wire_map(self.inputs))
        answer = await self.harness.provider.read(request)
        self.id, self.state = answer.resource_id or "", to_python_map(answer.properties)

    async def delete(self) -> None:
        await self.harness.provider.delete(sdk.DeleteRequest(self.urn, self.id, self.old, 0))


def settings_of(**config: Any) -> Settings:
    """A provider's settings."""
    settings, problems = configuration.parse(config)
    assert problems == []
    return settings


async def configured(type_: str, name: str = "it", **config: Any) -> Resource:
    """A new resource of a provider that is configured so."""
    harness = Harness(config)
    await harness.configure()
    return Resource(harness, type_, name)


async def until(so: Callable[[], bool]) -> None:
    """Waits for what happens soon, or fails."""
    for _ in range(6000):
        if so():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came so far")
