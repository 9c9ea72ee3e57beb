"""All of it on the lab's addresses, in one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from lab.machines.base import MachineBackend
from lab.metal_api import sos, wire
from lab.metal_api.application import api
from lab.metal_api.devices import Device
from lab.metal_api.metadata import metadata_app
from lab.metal_api.provisioning import Pace, Provisioner
from lab.metal_api.routing import Router, Routing
from lab.metal_api.settling import keep_settled
from lab.metal_api.state import Account, Chance, Clock, Identity
from lab.metal_api.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where to listen and with which certificates."""

    api: str
    metadata: str
    sos: str
    tls: Path
    """Directory of `<name>.crt` and `<name>.key`."""
    state: Path
    """Directory for what this process keeps."""

    def certificate(self, name: str) -> tuple[Path, Path]:
        """Chain and key of a name."""
        return self.tls / f"{name}.crt", self.tls / f"{name}.key"


class Service:
    """The whole service: `start`, then `run` until cancelled, then `close`."""

    def __init__(
        self,
        identity: Identity,
        places: Places,
        machines: MachineBackend,
        router: Router,
        *,
        pace: Pace,
        clock: Clock,
        chance: Chance,
    ) -> None:
        self.account = Account(identity, clock, chance)
        self._places = places
        self._machines = machines
        self._store = Store(places.state / "account.jsonl", self.account.tables)
        self._provisioner = Provisioner(self.account, machines, pace)
        self._routing = Routing(self.account, router)
        self._servers: list[tuple[wire.Server, Any]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._settling: asyncio.Task[None] | None = None
        self._sos: Any = None

    async def start(self) -> None:
        """Bind everything, open the machines, take up what was left; when this returns all is served."""
        places = self._places
        self._store.load()
        self.account.routes_changed = self._routing.touch
        application = api(self.account, self._provisioner, self._store, routing=self._routing)
        metadata = metadata_app(self.account, self._provisioner)
        secure = places.certificate("metadata.packet.net")
        for app, address, port, certificate in (
            (application, places.api, 443, places.certificate("api.equinix.com")),
            (metadata, places.metadata, 443, secure),
            (metadata, places.metadata, 80, None),
        ):
            self._servers.append((wire.server(app, certificate=certificate), wire.listen(address, port)))
        await self._routing.start()
        await self._machines.open()
        self._provisioner.attend()
        for server, sock in self._servers:
            self._tasks.append(await server.begin(sock))
        self._sos = await sos.serve(self.account, self._machines, places.sos, self._sos_key())
        await self._provisioner.resume()
        self._settling = asyncio.create_task(keep_settled(self.account, self._provisioner), name="settling")
        _log.info("Metal API ready: %d devices", len(self.account.table(Device)))

    async def run(self) -> None:
        """Until cancelled, or until a server dies."""
        assert self._settling is not None
        await asyncio.gather(*self._tasks, self._settling)

    async def close(self) -> None:
        """Stop serving, stop the machines, save. The router keeps what it knows: it ends with the facility."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        await self._provisioner.close()
        for server, _ in self._servers:
            server.should_exit = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._sos is not None:
            self._sos.close()
        await self._machines.close()
        await self._routing.close()
        self._store.close()

    def _sos_key(self) -> str:
        """The console server's host key, the same after a restart."""
        path = self._places.state / "sos_host_key"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as stream:
                stream.write(text)
        return path.read_text()
