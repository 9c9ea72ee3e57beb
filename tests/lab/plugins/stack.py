"""A stack of the real engine's, driven by the official SDKs, and what was said about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real_engine import make_stack, state_of

Program = Callable[[], None]


class Stack:
    """A stack in a directory of its own."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self._directory = directory
        self._environment = environment
        self.said: list[str] = []
        self._options: dict[str, Any] = {"on_output": self.said.append, "on_error": self.said.append, "color": "never"}

    def preview(self, program: Program) -> dict[str, int]:
        """What would be done, by how often."""
        result = make_stack(self._directory, program, **self._environment).preview(**self._options, diff=True)
        return {str(getattr(name, "value", name)): count for name, count in result.change_summary.items()}

    def up(self, program: Program) -> dict[str, int]:
        """What was done, by how often."""
        result = make_stack(self._directory, program, **self._environment).up(**self._options, diff=True)
        return {str(name): count for name, count in (result.summary.resource_changes or {}).items()}

    def refresh(self, program: Program) -> None:
        """Look at everything."""
        make_stack(self._directory, program, **self._environment).refresh(**self._options)

    def destroy(self, program: Program) -> None:
        """Remove everything."""
        make_stack(self._directory, program, **self._environment).destroy(**self._options)

    def state(self) -> dict[str, Any]:
        """Resources by their logical names."""
        found = json.loads(state_of(self._directory))["checkpoint"]["latest"]["resources"]
        return {entry["urn"].rsplit("::", 1)[1]: entry for entry in found}

    def everything_written(self) -> str:
        """State, history, and what was said."""
        files = [path for path in (self._directory / ".pulumi").rglob("*") if path.is_file()]
        return "\n".join([*(path.read_text(errors="replace") for path in files), *self.said])
