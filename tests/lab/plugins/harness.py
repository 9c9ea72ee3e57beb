"""Requests as the engine sends them, to a plug-in in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import EngineLog, StandIn
from lab.plugins.values import plain_map, wrap_map

PLUGINS = Path(__file__).parents[3] / "lab" / "plugins"
Json = dict[str, Any]


class Heard(EngineLog):
    """Keeps what would be shown."""

    def __init__(self) -> None:
        super().__init__("")
        self.lines: list[str] = []
        self.warnings: list[str] = []

    async def status(self, urn: str, message: str) -> None:
        self.lines.append(message)

    async def warning(self, urn: str, message: str) -> None:
        self.warnings.append(message)


def urn(token: str, name: str = "it") -> str:
    """A resource's name in full."""
    return f"urn:pulumi:lab::project::{token}::{name}"


async def eventually(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


class Closing(Protocol):
    """Something that holds connections."""

    async def close(self) -> None: ...


opened: list[Closing] = []
"""What the fixture `closed` closes: connections belong to the event loop they were made in."""


class Driver:
    """One resource type of a plug-in, spoken to in plain data."""

    def __init__(self, plugin: StandIn, token: str) -> None:
        self.plugin = plugin
        self.urn = urn(token)

    async def check(self, inputs: Json, old: Json | None = None) -> tuple[Json, dict[str, str]]:
        """Checked inputs, and the failures by property."""
        request = api.CheckRequest(self.urn, wrap_map(old or {}), wrap_map(inputs), b"\1" * 32)
        response = await self.plugin.check(request)
        return plain_map(response.inputs or {}), {
            failure.property: failure.reason for failure in response.failures or []
        }

    async def inputs(self, inputs: Json) -> Json:
        """Checked inputs that must be good."""
        checked, failures = await self.check(inputs)
        assert not failures
        return checked

    async def diff(self, state: Json, inputs: Json, ignore: tuple[str, ...] = ()) -> dict[str, str]:
        """Path → kind of every difference."""
        request = api.DiffRequest(self.urn, "id", wrap_map(state), wrap_map(inputs), list(ignore))
        response = await self.plugin.diff(request)
        found = {path: difference.kind.name for path, difference in response.detailed_diff.items()}
        assert response.changes is bool(found)
        assert bool(response.replaces) is any(kind.endswith("_REPLACE") for kind in found.values())
        return found

    async def create(
        self, inputs: Json, *, preview: bool = False, timeout: float = 0
    ) -> tuple[str, dict[str, PropertyValue]]:
        """Id and properties."""
        response = await self.plugin.create(api.CreateRequest(self.urn, wrap_map(inputs), timeout, preview))
        return response.resource_id or "", response.properties

    async def read(self, identifier: str, state: Json, inputs: Json) -> tuple[str, Json, Json]:
        """Id, properties and inputs."""
        response = await self.plugin.read(api.ReadRequest(self.urn, identifier, wrap_map(state), wrap_map(inputs)))
        return response.resource_id or "", plain_map(response.properties), plain_map(response.inputs)

    async def update(
        self, identifier: str, state: Json, inputs: Json, *, preview: bool = False, timeout: float = 0
    ) -> Json:
        """Properties."""
        request = api.UpdateRequest(self.urn, identifier, wrap_map(state), wrap_map(inputs), timeout, [], preview)
        return plain_map((await self.plugin.update(request)).properties)

    async def delete(self, identifier: str, state: Json, timeout: float = 0) -> None:
        """Remove it."""
        await self.plugin.delete(api.DeleteRequest(self.urn, identifier, wrap_map(state), timeout))
