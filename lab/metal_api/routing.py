"""What the facility's router has to know, told to it whenever it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from lab.metal_api.bgp.models import BgpSession, config_of
from lab.metal_api.devices.models import Device
from lab.metal_api.devices.network import has_addresses
from lab.metal_api.exceptions import RouterFailed
from lab.metal_api.ips.models import Assignment, public_blocks
from lab.metal_api.state import Account
from lab.network.bgp import Peer, RouterError, Routes, Seen, Static

_log = logging.getLogger(__name__)


class Router(Protocol):
    """The seam to the router: `lab.network.bird` is the real one. Both calls raise RouterError."""

    async def configure(self, routes: Routes) -> None:
        """Have exactly these peers and routes, from now on."""
        ...

    async def sessions(self) -> Mapping[str, Seen]:
        """What the router sees of its peers, by name."""
        ...


class NoRouter:
    """A facility without one: sessions can be ordered and never come up."""

    async def configure(self, routes: Routes) -> None:
        pass

    async def sessions(self) -> Mapping[str, Seen]:
        return {}


def routes_of(account: Account) -> Routes:
    """Peers and static routes as the account has them now."""
    peers: list[Peer] = []
    for session in account.table(BgpSession).values():
        device = account.table(Device)[session.device_id]
        if not has_addresses(account, device, public=False):
            continue
        config = config_of(account, device.project_id)
        assert config is not None
        peers.append(
            Peer(
                name=session.id,
                address=device.private_ipv4,
                asn=config.asn,
                password=config.md5,
                prefixes=tuple(block.network for block in public_blocks(account, device.project_id)),
                default_route=session.default_route,
            )
        )
    static = [
        Static(prefix=assignment.network, via=account.table(Device)[assignment.device_id].public_ipv4)
        for assignment in account.table(Assignment).values()
    ]
    return Routes(peers=tuple(peers), static=tuple(static))


class Routing:
    """Keeps the router at what the account says.

    A request that changed something waits for `commit` before it is answered: then the router has been told. Changes
    that nobody waits for (a device is gone) call `touch`, and are told in the background.
    """

    def __init__(self, account: Account, router: Router) -> None:
        self._account = account
        self._router = router
        self._told = Routes()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def touch(self) -> None:
        """Note a change that may be told later."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._later())

    async def start(self) -> None:
        """Tell everything, whatever the router knew; raises RouterError."""
        async with self._lock:
            self._told = routes_of(self._account)
            await self._router.configure(self._told)

    async def commit(self) -> None:
        """Return when the router knows everything changed until now; raises RouterFailed."""
        async with self._lock:
            wanted = routes_of(self._account)
            if wanted == self._told:
                return
            try:
                await self._router.configure(wanted)
            except RouterError as error:
                raise RouterFailed(str(error)) from error
            self._told = wanted

    async def seen(self) -> Mapping[str, Seen]:
        """What the router sees of the sessions, by session; raises RouterFailed."""
        try:
            return await self._router.sessions()
        except RouterError as error:
            raise RouterFailed(str(error)) from error

    async def close(self) -> None:
        """Tell nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _later(self) -> None:
        """The next change tells it again; until then the log, and the router's own state, show that it failed."""
        await asyncio.sleep(0)
        try:
            await self.commit()
        except RouterFailed as error:
            _log.error("%s", error)
