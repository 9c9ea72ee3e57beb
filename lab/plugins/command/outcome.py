"""The result of a command, and its output, which is passed to the engine while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from lab.plugins.base import PluginError
from lab.plugins.values import Json


@dataclass(frozen=True, kw_only=True)
class Run:
    """One command to run."""

    command: str
    secret: bool
    """Whether its text must not be shown."""
    inputs: Mapping[str, Json]
    """The resource's inputs as plain data."""
    status: Callable[[str], Awaitable[None]]
    """Shows a line to whoever watches."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """What it printed, without the last line's end."""

    stdout: str
    stderr: str


class Capture:
    """Collects output as it comes, apart and together, and shows it line by line in the order it came."""

    def __init__(self, run: Run) -> None:
        self._run = run
        shown = run.inputs.get("logging") or "stdoutAndStderr"
        self._shown = {"stdout": ("stdout",), "stderr": ("stderr",), "none": ()}.get(shown, ("stdout", "stderr"))
        self._parts: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._together = bytearray()
        self._line = bytearray()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._teller = asyncio.ensure_future(self._tell())

    def feed(self, stream: str, data: bytes) -> None:
        """More of stdout or stderr."""
        self._parts[stream] += data
        self._together += data
        if stream in self._shown:
            self._line += data
            *lines, rest = bytes(self._line).split(b"\n")
            self._line = bytearray(rest)
            for line in lines:
                self._lines.put_nowait(line.decode(errors="replace"))

    async def _tell(self) -> None:
        while (line := await self._lines.get()) is not None:
            await self._run.status(line)

    async def finish(self) -> None:
        """Show what is left, and wait until all is shown."""
        if self._line:
            self._lines.put_nowait(self._line.decode(errors="replace"))
        self._lines.put_nowait(None)
        await self._teller

    def abandon(self) -> None:
        """Stop showing."""
        self._teller.cancel()

    def failure(self, reason: str) -> PluginError:
        """The error of a command that failed, worded as the official plug-in words it."""
        command = "a secret command" if self._run.secret else json.dumps(self._run.command, ensure_ascii=False)
        return PluginError(f"{reason}: running {command}:\n{self._together.decode(errors='replace')}")

    def output(self) -> Output:
        """What it printed; text only, because the state holds nothing else."""
        texts: dict[str, str] = {}
        for name, data in self._parts.items():
            try:
                texts[name] = bytes(data).decode().removesuffix("\n")
            except UnicodeDecodeError:
                raise PluginError(f"the command's {name} is not UTF-8, which the state cannot hold") from None
        return Output(**texts)
