"""The lab's own emulation of the Metal API on loopback, with machines that boot as soon as they have power."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from lab.machines.base import BootOrder, MachineSpec, network_only
from lab.metal_api import wire
from lab.metal_api.application import api
from lab.metal_api.bgp import LOCAL_ASN, request_config
from lab.metal_api.hardware_reservations import sell
from lab.metal_api.metadata import metadata_app
from lab.metal_api.provisioning import Pace, Provisioner
from lab.metal_api.request_log import RequestLog
from lab.metal_api.routing import NoRouter, Routing
from lab.metal_api.settling import keep_settled
from lab.metal_api.state import Account, Chance, SystemClock
from lab.metal_api.store import Store
from tests.lab.metal_api.harness import IDENTITY, FakeMachines

_PROJECT = f"/projects/{IDENTITY.project_id}"
LISTS = (
    "/projects",
    f"{_PROJECT}/devices",
    f"{_PROJECT}/ips",
    f"{_PROJECT}/virtual-networks",
    f"{_PROJECT}/metal-gateways",
    f"{_PROJECT}/spot-market-requests",
    f"{_PROJECT}/ssh-keys",
)


class Booting(FakeMachines):
    """Fetches the script that a machine was ordered with, which makes its device active."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account
        self.provisioner = Provisioner(
            account, self, Pace(queued=0.05, provisioning=0.05, power=0.05, deprovisioning=0.05)
        )
        self._booting: set[asyncio.Task[None]] = set()

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        await super().power_on(spec, order)
        task = asyncio.create_task(self._boot(spec.id))
        self._booting.add(task)
        task.add_done_callback(self._booting.discard)

    async def _boot(self, machine: str) -> None:
        transport = httpx.ASGITransport(metadata_app(self._account, self.provisioner), client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="https://metadata.packet.net") as client:
            while (await client.get(f"/ipxe/{machine}")).status_code != 200:  # noqa: ASYNC110 - as iPXE does
                await asyncio.sleep(0.02)


class Emulation:
    """A running API: where it is, and what it has."""

    def __init__(self, machines: Booting, log: RequestLog, url: str) -> None:
        self.machines = machines
        self.log = log
        self.url = url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What somebody else does at the API, or the lab's own controls under /lab."""
        url = self.url.replace("/metal/v1", "") if path.startswith("/lab/") else self.url
        answer = httpx.request(method, f"{url}{path}", json=body, headers={"X-Auth-Token": IDENTITY.token})
        return answer.raise_for_status().json() if answer.content else None

    def fault(self, kind: str, *, method: str = "", path: str = "", **options: Any) -> None:
        """The next requests of a kind fail; see lab/metal_api/faults.py."""
        match = {key: value for key, value in (("method", method), ("path", path)) if value}
        self.ask("POST", "/lab/faults", {"kind": kind, "match": match, **options})

    def count(self, method: str, suffix: str) -> int:
        """How many requests of a kind came."""
        self.ask("GET", "/lab/faults")  # what was answered is counted by then
        return sum(n for route, n in self.log.counts.items() if re.fullmatch(f"{method} .*{suffix}", route))

    def left(self) -> dict[str, list[str]]:
        """What the API lists of everything that can be made."""
        return {path: self.ids(path) for path in LISTS}

    def ids(self, path: str) -> list[str]:
        """What a list has."""
        [entries] = [found for name, found in self.ask("GET", f"{path}?per_page=100").items() if name != "meta"]
        return sorted(entry["id"] for entry in entries)


@contextmanager
def emulation(directory: Path) -> Generator[Emulation, None, None]:
    """Served from a thread with a loop of its own, as long as the context lasts."""
    ready, found = threading.Event(), list[Emulation]()
    stop: list[wire.Server] = []

    async def serve() -> None:
        account = Account(IDENTITY, SystemClock(), Chance(7))
        store, log = Store(directory / "account.jsonl", account.tables), RequestLog()
        machines = Booting(account)
        store.load()
        request_config(account, IDENTITY.project_id, {"deployment_type": "local", "asn": LOCAL_ASN, "md5": None})
        sell(account, IDENTITY.project_id, {"plan": "c3.small.x86", "facility": "lab1"})
        routing = Routing(account, NoRouter())
        account.routes_changed = routing.touch
        await routing.start()
        sock = wire.listen("127.0.0.1", 0)
        server = wire.server(api(account, machines.provisioner, store, log, routing), certificate=None)
        serving = await server.begin(sock)
        settling = asyncio.create_task(keep_settled(account, machines.provisioner))
        found.append(Emulation(machines, log, f"http://127.0.0.1:{sock.getsockname()[1]}/metal/v1"))
        stop.append(server)
        ready.set()
        await serving
        settling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await settling
        await machines.provisioner.close()
        await routing.close()
        store.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield found[0]
    finally:
        for server in stop:
            server.should_exit = True
        thread.join()
