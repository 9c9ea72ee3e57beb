"""A stack of the real engine's with the stand-ins on its PATH, driven by the official SDKs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from tests.lab.plugins.harness import PLUGINS, engine

Program = Callable[[], None]


class Stack:
    """A stack in a directory of its own, and what was said about it."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self._directory = directory
        self.said: list[str] = []
        self._options: dict[str, Any] = {"on_output": self.said.append, "on_error": self.said.append, "color": "never"}
        self._environment = {
            "PATH": f"{Path(str(engine)).parent}:{PLUGINS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PULUMI_HOME": str(directory / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "passphrase",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
            **environment,
        }

    def _stack(self, program: Program) -> automation.Stack:
        backend = automation.ProjectBackend(f"file://{self._directory}")
        settings = automation.ProjectSettings("plugins", "python", backend=backend)
        options = automation.LocalWorkspaceOptions(
            work_dir=str(self._directory), project_settings=settings, env_vars=self._environment
        )
        return automation.create_or_select_stack("lab", "plugins", program, opts=options)

    def preview(self, program: Program) -> dict[str, int]:
        """What would be done, by how often."""
        result = self._stack(program).preview(**self._options, diff=True)
        return {str(getattr(name, "value", name)): count for name, count in result.change_summary.items()}

    def up(self, program: Program) -> dict[str, int]:
        """What was done, by how often."""
        result = self._stack(program).up(**self._options, diff=True)
        return {str(name): count for name, count in (result.summary.resource_changes or {}).items()}

    def refresh(self, program: Program) -> None:
        """Look at everything."""
        self._stack(program).refresh(**self._options)

    def destroy(self, program: Program) -> None:
        """Remove everything."""
        self._stack(program).destroy(**self._options)

    def state(self) -> dict[str, Any]:
        """Resources by their logical names."""
        document = json.loads((self._directory / ".pulumi/stacks/plugins/lab.json").read_text())
        return {entry["urn"].rsplit("::", 1)[1]: entry for entry in document["checkpoint"]["latest"]["resources"]}

    def everything_written(self) -> str:
        """State, history, and what was said."""
        files = [path for path in (self._directory / ".pulumi").rglob("*") if path.is_file()]
        return "\n".join([*(path.read_text(errors="replace") for path in files), *self.said])


@contextmanager
def automation_cleaned_up(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The Automation API looks for the engine on the PATH of this process, and never closes its event loops."""
    loops: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def remember() -> asyncio.AbstractEventLoop:
        loops.append(make())
        return loops[-1]

    monkeypatch.setenv("PATH", f"{Path(str(engine)).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(asyncio, "new_event_loop", remember)
    yield
    for loop in loops:
        if not loop.is_running():
            loop.close()
