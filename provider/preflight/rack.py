"""What the BMCs of a stack's servers tell: each is asked once, whichever check wants to know it first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.preflight.plan import Server

if TYPE_CHECKING:
    from metal_ipi.provider.platforms.redfish import Inventory, Redfish


class Rack:
    """The servers of a stack."""

    def __init__(self, driver: Redfish, servers: tuple[Server, ...]) -> None:
        """`servers` are those that have BMCs."""
        self._driver = driver
        self._servers = servers
        self._asked: asyncio.Future[list[Inventory | ProviderError]] | None = None

    async def inventories(self) -> list[tuple[Server, Inventory]]:
        """What the BMCs that answer tell. Of the others `troubles` tells."""
        return [(server, answer) for server, answer in await self._all() if not isinstance(answer, ProviderError)]

    async def troubles(self) -> list[tuple[Server, ProviderError]]:
        """Which BMCs do not tell, and why."""
        return [(server, answer) for server, answer in await self._all() if isinstance(answer, ProviderError)]

    async def _all(self) -> list[tuple[Server, Inventory | ProviderError]]:
        if self._asked is None:
            self._asked = asyncio.gather(*map(self._one, self._servers))
        return list(zip(self._servers, await self._asked, strict=True))

    async def _one(self, server: Server) -> Inventory | ProviderError:
        try:
            return await self._driver.inventory(str(server.bmc))
        except ProviderError as error:
            return error
