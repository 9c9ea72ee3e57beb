"""Shows progress: a live table on a terminal; otherwise plain lines, with a summary of waiting resources every 10 s."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from pulumi.automation import EngineEvent
from rich.table import Table

from tools.progress import Progress, Step
from tools.screen import Screen

_TICK = 0.5
_PLAIN_INTERVAL = 10.0
_SHOWN = 12


class Display:
    """Shows one operation while it runs. A context manager; pass its `on_event` to the Automation API."""

    def __init__(
        self,
        screen: Screen,
        *,
        plain_interval: float = _PLAIN_INTERVAL,
        also: Sequence[Callable[[EngineEvent], None]] = (),
    ) -> None:
        """`also`: functions that get every event too."""
        self.progress = Progress(clock=time.monotonic)
        self._screen = screen
        self._interval = plain_interval
        self._also = tuple(also)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True, name="display")

    def __enter__(self) -> Display:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._screen.live(None)

    def on_event(self, event: EngineEvent) -> None:
        """Handles an event of the engine; runs in a thread of the Automation API."""
        for take in self._also:
            take(event)
        with self._lock:
            lines = self.progress.handle(event)
        for line in lines:
            self._screen.line(line.text, line.style)

    def _tick(self) -> None:
        shown_at = time.monotonic()
        while not self._done.wait(_TICK):
            now = time.monotonic()
            with self._lock:
                waiting = self.progress.waiting()
            if self._screen.is_terminal:
                self._screen.live(self._table(waiting, now))
            elif now - shown_at >= self._interval:
                shown_at = now
                for text in waiting_lines([s for s in waiting if now - s.started >= self._interval / 2], now):
                    self._screen.line(text)

    def _table(self, waiting: list[Step], now: float) -> Table:
        table = Table.grid(padding=(0, 2), expand=False)
        for column in ("what", "seconds", "status"):
            table.add_column(
                column, justify="right" if column == "seconds" else "left", no_wrap=True, overflow="ellipsis"
            )
        redact = self._screen.redact
        for step in waiting[:_SHOWN]:
            style = "bold cyan" if step.is_gate else ""
            status = redact(step.status).partition("\n")[0]
            table.add_row(step.title, f"{now - step.started:.0f} s", status, style=style)
        if len(waiting) > _SHOWN:
            table.add_row(f"and {len(waiting) - _SHOWN} more", "", "")
        return table


def waiting_lines(waiting: list[Step], now: float) -> list[str]:
    """One line per waiting gate, and one line for all other resources."""
    lines: list[str] = []
    others: list[str] = []
    for step in waiting:
        seconds = f"{now - step.started:.0f} s"
        status = step.status.partition("\n")[0]
        if step.is_gate:
            lines.append(f"  waiting for {step.title}, {seconds}" + (f": {status}" if status else ""))
        else:
            others.append(f"{step.title} {seconds}" + (f": {status}" if status else ""))
    if others:
        more = f"; and {len(others) - 4} more" if len(others) > 4 else ""
        lines.append(f"  waiting for {'; '.join(others[:4])}{more}")
    return lines
