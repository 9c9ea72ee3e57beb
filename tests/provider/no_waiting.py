"""A clock that passes the provider's pauses at once, and not faster than machines and servers of a test answer."""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any

from metal_ipi.provider import backoff

_IDLE = 0.005
"""Seconds without input from a socket after which everybody waits: servers on loopback, in threads too, are faster."""
_LOOKS = 4
"""Waits for sockets meanwhile: while the loop computes, or the whole machine stands still, seconds say nothing."""


class _Selector(selectors.DefaultSelector):
    """Notes since when there was nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self.idle_since: float | None = None
        self.looks = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.idle_since is None:
            self.idle_since = time.monotonic()
        found = super().select(timeout)
        if found:
            self.idle_since, self.looks = None, 0
        elif timeout != 0:  # with 0 callbacks are ready, and what they do may take long
            self.looks += 1
        return found


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that knows whether anything but pauses goes on in it."""

    def __init__(self) -> None:
        self._watched = _Selector()
        self._in_threads = 0
        super().__init__(self._watched)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """As always; what goes on in a thread (names are looked up, files are read) is not a pause."""
        job = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        job.add_done_callback(self._ended)
        return job

    def _ended(self, job: asyncio.Future[Any]) -> None:
        self._in_threads -= 1

    def is_idle(self) -> bool:
        since = self._watched.idle_since
        if self._in_threads:
            return False
        return since is not None and self._watched.looks >= _LOOKS and time.monotonic() - since >= _IDLE


class NoWaiting(backoff.Clock):
    """Once all that goes on is pauses, it is as late as when the first of them ends."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._ends: list[float] = []

    def now(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        loop, end = asyncio.get_running_loop(), self.now() + seconds
        self._ends.append(end)
        try:
            while True:
                await asyncio.sleep(min(seconds, 0.002))
                left = end - self.now()
                if left <= 0:
                    return
                if end == min(self._ends) and (not isinstance(loop, WatchedLoop) or loop.is_idle()):
                    self._ahead += left
        finally:
            self._ends.remove(end)
