"""Turns: how many machines of a pool may be unavailable at once. A failure ends the roll.

A plugin process lives for one update, so what the machines of one update must know about each other is kept in memory.
A killed update loses it, which does no harm: unavailable machines are noticed through the cluster's API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import ProviderError

Others = Callable[[], Awaitable[dict[str, str]]]
"""Returns the other members of the pool that are unavailable, and why."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one machine of a pool waits for."""

    node: str
    at_once: int
    """How many machines of the pool may be unavailable at once."""
    up: bool
    """Whether it is still available."""
    others: Others
    tell: Callable[[str], Awaitable[None]]
    """Reports what it waits for."""
    timeout: float
    """Seconds to wait for unavailable members to come back."""
    remedy: str
    """What to do if they do not."""

    @property
    def place(self) -> tuple[bool, str]:
        """The order of turns: unavailable machines first, then by name."""
        return (self.up, self.node)


class Roll:
    """The turns of one pool."""

    def __init__(self, *, gather: float, look: float) -> None:
        """The engine starts all machines of a pool nearly at once, in any order: the first one waits `gather` seconds
        for the others. `look` is the time between two looks at the cluster."""
        self._gather, self._look = gather, look
        self._away: set[str] = set()
        self._waiting: dict[str, tuple[bool, str]] = {}
        """The waiting machines, and their places in the order."""
        self._failed: str | None = None
        self._changed = asyncio.Event()
        """Set when the unavailable or waiting machines have changed; then replaced by a new event."""

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, turn: Turn) -> AsyncGenerator[None, None]:
        """Wait until the machine may be unavailable; the context is its turn. Raises ProviderError."""
        self._waiting[turn.node] = turn.place
        try:
            await self._wait(turn)
            self._away.add(turn.node)
        finally:
            del self._waiting[turn.node]
            self._change()
        try:
            yield
        except Exception:
            self._failed = self._failed or turn.node
            raise
        finally:
            self._away.discard(turn.node)
            self._change()

    async def _wait(self, turn: Turn) -> None:
        node, at_once, up = turn.node, turn.at_once, turn.up
        hindered_since: float | None = None
        await backoff.clock.sleep(self._gather)
        while True:
            if self._failed is not None:
                raise ProviderError(
                    f"{node} is not installed, because {self._failed} failed: see its error; then run the same "
                    "command again"
                )
            if len(self._away) >= at_once or min(self._waiting.values()) != turn.place:
                changed = self._changed
                await turn.tell(f"waiting for its turn after {', '.join(sorted(self._away) or sorted(self._waiting))}")
                await changed.wait()
                hindered_since = None
                continue
            # Only the machine whose turn it is asks the cluster; meanwhile no other machine can get its turn.
            down = await turn.others() if up else {}
            away = {**down, **{name: "being installed" for name in self._away if name != node}}
            if self._failed is None and len(self._away) < at_once and (not up or len(away) < at_once):
                return
            hindered_since = hindered_since if hindered_since is not None else backoff.clock.now()
            text = "; ".join(f"{name} ({why})" for name, why in sorted(away.items()))
            if down and backoff.clock.now() - hindered_since >= turn.timeout:
                raise ProviderError(
                    f"{node} is not installed: these nodes of its pool are unavailable already: {text}; and only "
                    f"{at_once} may be at once. {turn.remedy}"
                )
            await turn.tell(f"{node} waits: unavailable already: {text}")
            await backoff.clock.sleep(self._look)
