"""What the facility's router has to know, told to it whenever it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lab.metal_api.addresses import public_networks
from lab.metal_api.devices import Device
from lab.metal_api.exceptions import RouterFailed
from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account
from lab.network.bgp import Peer, RouterError, Routes, Seen

_log = logging.getLogger(__name__)


class Router(Protocol):
    """The seam to the router: `lab.network.bird` is the real one. Both calls raise RouterError."""

    async def configure(self, routes: Routes) -> None:
        """Set the peers and routes; all others are removed."""
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


@saved("bgp_configs", indexed=("project_id",))
@dataclass(kw_only=True)
class BgpConfig(Record):
    """What lets a project's devices speak BGP. There is at most one per project, and the API cannot take it away."""

    project_id: str
    asn: int
    md5: str | None


@saved("bgp_sessions", indexed=("device_id", "project_id"), of_device=True)
@dataclass(kw_only=True)
class BgpSession(Record):
    """Metal's routers' side of BGP with one device, over IPv4."""

    project_id: str
    device_id: str
    default_route: bool


def config_of(account: Account, project_id: str) -> BgpConfig | None:
    """A project's configuration."""
    return next(iter(account.table(BgpConfig).where("project_id", project_id)), None)


def routes_of(account: Account) -> Routes:
    """Every device with a session is a peer, which may announce its project's addresses."""
    peers: list[Peer] = []
    for session in account.table(BgpSession).values():
        device, config = account.table(Device)[session.device_id], config_of(account, session.project_id)
        assert config is not None, "the API cannot take it away"
        peers.append(
            Peer(
                name=session.id,
                address=device.private_ipv4,
                asn=config.asn,
                password=config.md5,
                prefixes=public_networks(account, device.project_id),
                default_route=session.default_route,
            )
        )
    return Routes(peers=tuple(peers))


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
        """Note a change that may be sent to the router later."""
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
