"""The output for the user. Every line passes through here, and secrets are masked."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.live import Live

_SHORTEST = 8
"""Shorter strings are not masked, because ordinary words would match them."""


class Redactor:
    """Replaces known secrets by `[secret]`. The engine masks secrets that it knows; this is a second protection."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Adds secrets; each line of a multi-line text counts as one, too."""
        for secret in secrets:
            lines = (line.strip() for line in (secret, *secret.splitlines()))
            self._secrets |= {line for line in lines if len(line) >= _SHORTEST and "-----" not in line}

    def __call__(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "[secret]")
        return text


class _Console(Console):
    """A console that continues silently when its reader ends (`make up | head`), because half an installation is
    useless."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Screen:
    """Prints lines, and on a terminal a live part below them."""

    def __init__(self, console: Console | None = None, redact: Redactor | None = None) -> None:
        # Without a terminal the output is a log, which should not wrap lines.
        # Nothing here has emoji codes, and their table takes 0.1 s to import.
        self.console = console or _Console(highlight=False, soft_wrap=True, emoji=False)
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
        """Prints one or more lines."""
        with self._lock:
            self.console.print(self.redact(text), style=style, markup=False, highlight=False)

    def show(self, renderable: RenderableType) -> None:
        """Prints a table or similar, whose cells must be redacted already."""
        with self._lock:
            self.console.print(renderable)

    def live(self, renderable: RenderableType | None) -> None:
        """Replaces the live part; None removes it."""
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
