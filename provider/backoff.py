"""Growing pauses between attempts, and the timeout for all of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable


class Clock:
    """The time, and pauses. Tests replace it."""

    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


clock = Clock()
"""The clock for pauses and timeouts. Tests replace it by one that does not wait."""


class Backoff:
    """Pauses that grow by the factor `growth` from `first` to `longest` seconds, each varied by 10 %, until `timeout`
    has passed."""

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
        """Remaining seconds; never negative."""
        return max(0.0, self._timeout - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0

    async def wait_for(self, what: str, tell: Callable[[str], Awaitable[None]], too_long: Exception) -> None:
        """Report what is waited for and for how long, then pause. Raises `too_long` if the time is up."""
        if self.over:
            raise too_long
        await tell(f"waiting for {what}, {self.elapsed:.0f} s")
        await self.pause()

    async def pause(self, at_least: float = 0.0) -> None:
        """Pause, at most until the timeout. `at_least` is the time that a server asked for, in seconds."""
        pause = max(self._pause * random.uniform(0.9, 1.1), at_least)  # noqa: S311 - spreads load, keeps no secret
        self._pause = min(self._pause * self._growth, self._longest)
        await clock.sleep(min(pause, self.left))
