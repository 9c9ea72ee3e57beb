"""Waiting between attempts, longer each time, and knowing when it is enough."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable


class Clock:
    """What time it is, and waiting until it is later."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


clock = Clock()
"""By which pauses and timeouts are measured. Tests put one in its place that does not wait."""


class Backoff:
    """Pauses that grow by `growth` from `first` to `longest` seconds, spread by a fifth, until `timeout` has passed."""

    def __init__(self, *, timeout: float, first: float = 0.3, longest: float = 5.0, growth: float = 1.5) -> None:
        self._start = clock.now()
        self._timeout = timeout
        self._pause = first
        self._longest = longest
        self._growth = growth

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return clock.now() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left; never negative."""
        return max(0.0, self._timeout - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0

    async def wait_for(self, what: str, tell: Callable[[str], Awaitable[None]], too_long: Exception) -> None:
        """Tells what is waited for and how long it was, and waits before the next look. Raises `too_long` when the time
        is up."""
        if self.over:
            raise too_long
        await tell(f"waiting for {what}, {self.elapsed:.0f} s")
        await self.pause()

    async def pause(self, at_least: float = 0.0) -> None:
        """Waits, not beyond the end of the time. `at_least` is what a server asked for."""
        pause = max(self._pause * random.uniform(0.9, 1.1), at_least)  # noqa: S311 - spreads load, keeps no secret
        self._pause = min(self._pause * self._growth, self._longest)
        await clock.sleep(min(pause, self.left))
