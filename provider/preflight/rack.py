"""The facts of a stack's servers. Each server is asked only once, for all checks together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.preflight.plan import Server


class Rack:
    """Servers, and the function that asks for their facts."""

    def __init__(self, servers: Sequence[Server], ask: Callable[[Server], Awaitable[Hardware]]) -> None:
        """`ask` raises ProviderError if it gets no facts of a server."""
        self._servers, self._ask = servers, ask
        self._asked: asyncio.Future[list[Hardware | ProviderError]] | None = None

    async def answers(self) -> list[tuple[Server, Hardware]]:
        """The servers that answered, with their facts. `troubles` returns the others."""
        return [(server, answer) for server, answer in await self._all() if not isinstance(answer, ProviderError)]

    async def troubles(self) -> list[tuple[Server, ProviderError]]:
        """The servers without facts, with the error."""
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
