"""The lab's own emulation of the Metal API on loopback, with machines that boot as soon as they have power."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from lab.machines.base import BootOrder, MachineSpec, network_only
from lab.metal_api import wire
from lab.metal_api.application import api
from lab.metal_api.bgp.models import LOCAL_ASN, request_config
from lab.metal_api.devices.provisioning import Pace, Provisioner
from lab.metal_api.hardware_reservations.models import create as sell
from lab.metal_api.metadata import metadata_app
from lab.metal_api.middleware import RequestLog
from lab.metal_api.routing import NoRouter, Routing
from lab.metal_api.settling import keep_settled
from lab.metal_api.sources import Chance, SystemClock
from lab.metal_api.state import Account
from lab.metal_api.store import Store
from tests.lab.metal_api.harness import IDENTITY, FakeMachines

_PROJECT = f"/projects/{IDENTITY.project_id}"
LISTS = (
    "/organizations",
    "/projects",
    "/ssh-keys",
    "/user/api-keys",
    f"{_PROJECT}/devices",
    f"{_PROJECT}/ips",
    f"{_PROJECT}/virtual-networks",
    f"{_PROJECT}/metal-gateways",
    f"{_PROJECT}/spot-market-requests",
    f"{_PROJECT}/ssh-keys",
    f"{_PROJECT}/api-keys",
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
            assert (await client.get(f"/ipxe/{machine}")).status_code == 200


class Emulation:
    """A running API: where it is, and what it has."""

    def __init__(self, account: Account, log: RequestLog, url: str) -> None:
        self.account = account
        self.log = log
        self.url = url

    def left(self) -> dict[str, list[str]]:
        """What the API lists of everything that can be made."""
        headers = {"X-Auth-Token": IDENTITY.token}
        with httpx.Client(base_url=self.url, headers=headers, params={"per_page": 100}) as client:
            return {path: _ids(client.get(path)) for path in LISTS}


def _ids(answer: httpx.Response) -> list[str]:
    [entries] = [entries for name, entries in answer.raise_for_status().json().items() if name != "meta"]
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
        found.append(Emulation(account, log, f"http://127.0.0.1:{sock.getsockname()[1]}/metal/v1"))
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
