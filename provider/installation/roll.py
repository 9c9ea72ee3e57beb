"""Taking turns: how many machines of a pool may be away at once, and that a failure ends the roll.

A plug-in process lives for one update, so what the machines of one update have to know of each other is kept here, in
memory. A killed update forgets it, which does no harm: machines that are away are seen to be, in the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from provider.errors import ProviderError

Others = Callable[[], Awaitable[dict[str, str]]]
"""Members of the pool that are away now, and why, without the one who asks."""


class Roll:
    """The turns of one pool."""

    def __init__(self, *, gather: float, look: float) -> None:
        """The engine begins with all machines of a pool nearly at once, in any order: the first one waits `gather`
        seconds for the others. `look` is the time between two looks at the cluster."""
        self._gather, self._look = gather, look
        self._away: set[str] = set()
        self._waiting: dict[str, tuple[bool, str]] = {}
        """Who waits, and its place: those that are away anyway go first, then by name."""
        self._failed: str | None = None

    @asynccontextmanager
    async def turn(
        self,
        node: str,
        *,
        at_once: int,
        up: bool,
        others: Others,
        tell: Callable[[str], Awaitable[None]],
        timeout: float,
        remedy: str,
    ) -> AsyncGenerator[None, None]:
        """Waits until a machine may be away; `up` tells that it is not away already."""
        self._waiting[node] = (up, node)
        try:
            await self._wait(node, at_once, up=up, others=others, tell=tell, timeout=timeout, remedy=remedy)
            self._away.add(node)
        finally:
            del self._waiting[node]
        try:
            yield
        except Exception:
            self._failed = self._failed or node
            raise
        finally:
            self._away.discard(node)

    async def _wait(
        self,
        node: str,
        at_once: int,
        *,
        up: bool,
        others: Others,
        tell: Callable[[str], Awaitable[None]],
        timeout: float,
        remedy: str,
    ) -> None:
        loop = asyncio.get_running_loop()
        hindered_since: float | None = None
        pause = self._gather
        while True:
            await asyncio.sleep(pause)
            if self._failed is not None:
                raise ProviderError(
                    f"{node} is not begun with, because {self._failed} failed: see there; the same command goes on"
                )
            pause = self._gather
            if len(self._away) >= at_once or min(self._waiting.values()) != self._waiting[node]:
                await tell(f"waiting for its turn after {', '.join(sorted(self._away) or sorted(self._waiting))}")
                hindered_since = None
                continue
            # What is in the cluster is only asked for by the one whose turn it is; while it looks, nobody overtakes it.
            down = await others() if up else {}
            away = {**down, **{name: "being installed" for name in self._away if name != node}}
            if self._failed is None and len(self._away) < at_once and (not up or len(away) < at_once):
                return
            hindered_since = hindered_since if hindered_since is not None else loop.time()
            text = "; ".join(f"{name} ({why})" for name, why in sorted(away.items()))
            if down and loop.time() - hindered_since >= timeout:
                raise ProviderError(
                    f"{node} is not taken down: of its pool these are away already: {text}; and only {at_once} may be "
                    f"at once. {remedy}"
                )
            await tell(f"waiting with {node}: away already: {text}")
            pause = self._look
