"""An API in this process, with a back end and a clock that tests hold."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncssh
import httpx
from starlette.types import ASGIApp

from lab.machines.base import BackendError, BootOrder, MachineSpec, network_only
from lab.metal_api import wire
from lab.metal_api.application import api
from lab.metal_api.devices import Device
from lab.metal_api.metadata import metadata_app
from lab.metal_api.provisioning import Pace, Provisioner
from lab.metal_api.records import Table
from lab.metal_api.request_log import RequestLog
from lab.metal_api.routing import Routing
from lab.metal_api.state import Account, Chance, Clock, Identity
from lab.metal_api.store import Store
from lab.network.bgp import RouterError, Routes, Seen

IDENTITY = Identity(
    token="the token",
    organization_id="22222222-2222-4222-8222-222222222222",
    project_id="11111111-1111-4111-8111-111111111111",
)
SAVED = "account.jsonl"
API = "/metal/v1"
PROJECT = f"{API}/projects/{IDENTITY.project_id}"
PUBLIC_KEY = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
ORDER: dict[str, Any] = {
    "hostname": "lab-worker-0",
    "plan": "c3.small.x86",
    "metro": "lb",
    "operating_system": "custom_ipxe",
    "ipxe_script_url": "http://boot.facility.test/boot.ipxe",
}


class FakeClock:
    """A clock that jumps: sleeping takes no time but lets others run, unless somebody stops the clock."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.runs = asyncio.Event()
        self.runs.set()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await self.runs.wait()
        self.time += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@dataclass
class FakeMachines:
    """Notes what it was asked."""

    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    specs: dict[str, MachineSpec] = field(default_factory=dict[str, MachineSpec])
    orders: dict[str, BootOrder] = field(default_factory=dict[str, BootOrder])
    blanked: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    refuse: str | None = None
    printed: dict[str, bytes] = field(default_factory=dict[str, bytes])
    survivors: frozenset[str] = frozenset()
    """What is up although nobody here switched it on."""

    async def open(self) -> None:
        self.calls.append(("open", ""))

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        if self.refuse is not None:
            raise BackendError(self.refuse)
        self.specs[spec.id], self.orders[spec.id] = spec, order
        self.calls.append(("power_on", spec.id))

    async def power_off(self, machine_id: str) -> None:
        self.calls.append(("power_off", machine_id))

    async def blank(self, machine_id: str, serials: Collection[str]) -> None:
        await self.power_off(machine_id)
        self.blanked.append(tuple(serials))

    async def delete(self, machine_id: str) -> None:
        self.calls.append(("delete", machine_id))

    def running(self) -> frozenset[str]:
        return self.survivors

    def attend(self, machine_id: str, order: BootOrder) -> None:
        assert machine_id in self.survivors
        self.orders[machine_id] = order

    def console(self, machine_id: str) -> bytes:
        return self.printed.get(machine_id, b"")

    async def close(self) -> None:
        self.calls.append(("close", ""))


class FakeRouter:
    """Notes what it was told, and says what a test wants it to see."""

    def __init__(self) -> None:
        self.told: list[Routes] = []
        self.sees: dict[str, Seen] = {}
        self.refuse: str | None = None

    async def configure(self, routes: Routes) -> None:
        if self.refuse is not None:
            raise RouterError(self.refuse)
        self.told.append(routes)

    async def sessions(self) -> Mapping[str, Seen]:
        return self.sees


@dataclass
class World:
    """Everything a test may want to look at."""

    account: Account
    clock: Any
    """A `FakeClock`, unless a test wants another."""
    machines: FakeMachines
    router: FakeRouter
    routing: Routing
    provisioner: Provisioner
    store: Store
    log: RequestLog
    app: ASGIApp
    client: httpx.AsyncClient
    loop: asyncio.AbstractEventLoop | None = None
    """Of a world that lives in a thread of its own."""

    @property
    def devices(self) -> Table[Device]:
        """All devices, by id."""
        return self.account.table(Device)

    def machine(self, address: str) -> httpx.AsyncClient:
        """A client of the metadata service, seen from `address`."""
        transport = httpx.ASGITransport(metadata_app(self.account, self.provisioner), client=(address, 40000))
        return httpx.AsyncClient(transport=transport, base_url="https://metadata.packet.net")

    async def get(self, path: str, *, status: int = 200, **query: Any) -> Any:
        """What a GET answers, which must have the status."""
        return await self.call("GET", path, status=status, params=query or None)

    async def post(self, path: str, body: Any = None, *, status: int = 201) -> Any:
        """What a POST answers, which must have the status."""
        return await self.call("POST", path, status=status, json=body)

    async def refused(self, path: str, body: Any = None, *, status: int = 422) -> list[str]:
        """Why a POST is refused."""
        return (await self.post(path, body, status=status))["errors"]

    async def delete(self, path: str, *, status: int = 204) -> Any:
        """What a DELETE answers, which must have the status."""
        return await self.call("DELETE", path, status=status)

    async def call(self, method: str, path: str, *, status: int, **options: Any) -> Any:
        """What a request answers, which must have the status."""
        answer = await self.client.request(method, path, **options)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def order(self, **changes: Any) -> dict[str, Any]:
        """A new device; fails the test when it is refused."""
        return await self.post(f"{PROJECT}/devices", {**ORDER, **changes})

    async def device(self, identity: str) -> dict[str, Any]:
        """A device as the API shows it."""
        return await self.get(f"{API}/devices/{identity}")

    async def gone(self, device: dict[str, Any]) -> None:
        """Wait until a device that is being released is gone."""
        await self.until(lambda: device["id"] not in self.devices)

    def inside(self, work: Callable[[], None]) -> None:
        """Do something where the world lives, asked from another thread."""
        assert self.loop is not None

        async def run() -> None:
            work()

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def elapse(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.time += timedelta(seconds=seconds)

    def boots(self, identity: str) -> tuple[str, ...]:
        """What a machine that resets itself now would boot."""
        return self.machines.orders[identity](identity)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let background tasks run until something holds; fails after many turns, not after a time."""
        for _ in range(1000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never came to hold")

    async def booted(self, identity: str) -> dict[str, Any]:
        """Wait for the machine to be powered on, fetch its iPXE script for it, and show the device."""
        await self.until(lambda: ("power_on", identity) in self.machines.calls)
        async with self.machine("127.0.0.1") as client:
            assert (await client.get(f"/ipxe/{identity}")).status_code == 200
        return await self.device(identity)


@asynccontextmanager
async def world(
    directory: Path, *, clock: Clock | None = None, machines: FakeMachines | None = None, pace: Pace | None = None
) -> AsyncGenerator[World, None]:
    """A world whose state is in `directory`; a second one there finds what the first left."""
    clock, machines = clock or FakeClock(), machines or FakeMachines()
    account = Account(IDENTITY, clock, Chance(7))
    store = Store(directory / SAVED, account.tables)
    provisioner = Provisioner(account, machines, pace or Pace())
    store.load()
    router = FakeRouter()
    routing = Routing(account, router)
    account.routes_changed = routing.touch
    await routing.start()
    log = RequestLog()
    app = api(account, provisioner, store, log, routing)
    transport = httpx.ASGITransport(app)
    headers = {"X-Auth-Token": IDENTITY.token}
    async with httpx.AsyncClient(transport=transport, base_url="https://api.equinix.com", headers=headers) as client:
        try:
            yield World(account, clock, machines, router, routing, provisioner, store, log, app, client)
        finally:
            await provisioner.close()
            await routing.close()
            store.close()


@asynccontextmanager
async def on_loopback(lab: World) -> AsyncGenerator[str, None]:
    """Where its API listens, behind uvicorn."""
    sock = wire.listen("127.0.0.1", 0)
    server = wire.server(lab.app, certificate=None)
    task = await server.begin(sock)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@contextmanager
def served(directory: Path, **options: Any) -> Generator[tuple[str, World], None, None]:
    """A world on a loopback port, in a thread with a loop of its own, for clients that block."""
    ready, found = threading.Event(), list[tuple[str, World]]()
    stop = asyncio.Event()

    async def serve() -> None:
        async with world(directory, **options) as lab, on_loopback(lab) as url:
            lab.loop = asyncio.get_running_loop()
            found.append((f"{url}{API}", lab))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield found[0]
    finally:
        for _, lab in found:
            lab.inside(stop.set)
        thread.join()
