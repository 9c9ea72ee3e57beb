"""What is told of a stack's servers: each is asked for once, whichever check wants to know it first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.preflight.plan import Server


class Rack:
    """Servers that are there, and whom to ask about them."""

    def __init__(self, servers: Sequence[Server], ask: Callable[[Server], Awaitable[Hardware]]) -> None:
        """`ask` raises ProviderError where nothing is told."""
        self._servers, self._ask = servers, ask
        self._asked: asyncio.Future[list[Hardware | ProviderError]] | None = None

    async def answers(self) -> list[tuple[Server, Hardware]]:
        """What is told. Of the other servers `troubles` tells."""
        return [(server, answer) for server, answer in await self._all() if not isinstance(answer, ProviderError)]

    async def troubles(self) -> list[tuple[Server, ProviderError]]:
        """Of which servers nothing is told, and why."""
        return [(server, answer) for server, answer in await self._all() if isinstance(answer, ProviderError)]

    async def _all(self) -> list[tuple[Server, Hardware | ProviderError]]:
        if self._asked is None:
            self._asked = asyncio.gather(*map(self._one, self._servers))
        return list(zip(self._servers, await self._asked, strict=True))

    async def _one(self, server: Server) -> Hardware | ProviderError:
        try:
            return await self._ask(server)
        except ProviderError as error:
            return error
