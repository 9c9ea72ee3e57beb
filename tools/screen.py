"""What the user sees. Every line goes through here, and no secret gets out."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.live import Live

_SHORTEST = 8
"""Shorter strings are not masked: they would tear holes into ordinary words."""


class Redactor:
    """Replaces known secrets by `[secret]`. The engine masks what it knows as secret; this is the second line."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Learn secrets; of a text of several lines, each line is one."""
        for secret in secrets:
            lines = (line.strip() for line in (secret, *secret.splitlines()))
            self._secrets |= {line for line in lines if len(line) >= _SHORTEST and "-----" not in line}

    def __call__(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "[secret]")
        return text


class _Console(Console):
    """A console whose reader may leave (`make up | head`): the run goes on, half an installation helps nobody."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Screen:
    """Prints lines; on a terminal, with a live part below them."""

    def __init__(self, console: Console | None = None, redact: Redactor | None = None) -> None:
        # Without a terminal the width is not ours to decide: whoever reads a log wants whole lines.
        self.console = console or _Console(highlight=False, soft_wrap=True)
        if console is None and not self.console.is_terminal:
            self.console.width = 200
        self.redact = redact or Redactor()
        self._lock = threading.Lock()
        self._live: Live | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the live part is shown."""
        return self.console.is_terminal

    def line(self, text: str, style: str = "") -> None:
        """Print one line, or several."""
        with self._lock:
            self.console.print(self.redact(text), style=style, markup=False, highlight=False)

    def show(self, renderable: RenderableType) -> None:
        """Print a table or the like, of which each cell was redacted."""
        with self._lock:
            self.console.print(renderable)

    def live(self, renderable: RenderableType | None) -> None:
        """Replace the live part; None ends it."""
        with self._lock:
            if renderable is None:
                if self._live is not None:
                    self._live.stop()
                    self._live = None
            elif self._live is None:
                self._live = Live(renderable, console=self.console, transient=True, auto_refresh=False)
                self._live.start(refresh=True)
            else:
                self._live.update(renderable, refresh=True)
