"""A rack on loopback, over machines that only say what they were told: real HTTPS, real sushy."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Collection, Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import sushy
import sushy.auth
import sushy.exceptions

from lab import facts, setup
from lab.bmc import identity
from lab.bmc.control import Control
from lab.bmc.rack import Bmc, Rack
from lab.facts import Rack as Known
from lab.layout import Layout
from lab.machines.base import BootDevice, BootOrder, MachineSpec, Power, network_only
from lab.network import certificates, plan
from tests.lab.openshift import kinds

_T = TypeVar("_T")
_ROOT = Path(__file__).resolve().parents[3]


class FakeMachines:
    """A RackBackend that keeps a diary."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.specs: dict[str, MachineSpec] = {}
        self.orders: dict[str, BootOrder] = {}
        self.boots: list[tuple[BootDevice, ...]] = []
        self.listens = True
        """Whether an operating system hears the power button."""

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        self.calls.append(("power_on", spec.hostname))
        self.specs[spec.id], self.orders[spec.id] = spec, order
        self.boots.append(order(spec.id))

    def guest_reset(self, machine_id: str) -> None:
        """The operating system reboots."""
        self.boots.append(self.orders[machine_id](machine_id))

    async def power_off(self, machine_id: str) -> None:
        self.calls.append(("power_off", machine_id))
        self.orders.pop(machine_id, None)

    async def delete(self, machine_id: str) -> None:
        await self.power_off(machine_id)

    async def power_state(self, machine_id: str) -> Power:
        return "on" if machine_id in self.orders else "off"

    async def shutdown(self, machine_id: str) -> None:
        self.calls.append(("shutdown", machine_id))
        if self.listens:
            self.orders.pop(machine_id, None)

    async def blank(self, machine_id: str, serials: Collection[str]) -> None:
        self.calls += [("blank", serial) for serial in serials]

    def console(self, machine_id: str) -> bytes:
        return b""


class World:
    """The rack, in an event loop of its own thread: sushy blocks."""

    def __init__(self, directory: Path, count: int = 1) -> None:
        self.layout = Layout.of(directory)
        self.layout.make()
        servers = [
            replace(each, bmc=replace(each.bmc, address="https://127.0.0.1"))
            for each in identity.make(count, str(self.layout.ca))
        ]
        self.servers = servers
        certificates.ensure(self.layout, {each.name: each.host for each in servers})
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._clients: list[Any] = []
        self.ports: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        """Start the service, over machines that are new."""
        self.machines = FakeMachines()
        self.layout.rack.mkdir(exist_ok=True)
        self.rack = Rack(self.servers, self.machines, self.layout.rack, self.layout.tls)
        self.control = Control(self.rack, self.layout.rack)

        async def listening(bmc: Bmc) -> None:
            self.ports[bmc.identity.name] = bmc.listen("127.0.0.1", 0)

        self.run(self.rack.open(listening))
        self.run(self.control.open())

    def stop(self) -> None:
        """Stop the service. Clients log out, for sushy would try for long to do so later."""
        for client in self._clients:
            with suppress(sushy.exceptions.ResourceNotFoundError):  # a BMC that restarted forgot it
                client._auth.close()
            client._conn._session.close()
        self._clients.clear()
        self.run(self.control.close())
        self.run(self.rack.close())

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def do(self, **request: Any) -> Any:
        """A control request, in-process."""
        return self.run(self.control.do(request))

    def fault(self, kind: str, **options: Any) -> None:
        """Have the first BMC misbehave."""
        self.do(do="fault", server="server-0", fault={"kind": kind, **options})

    def url(self, number: int = 0) -> str:
        """The root of a BMC's Redfish service."""
        return f"https://127.0.0.1:{self.ports[f'server-{number}']}/redfish/v1/"

    def client(self) -> httpx.Client:
        """A client of the first BMC that trusts the lab's CA and tries once."""
        context = ssl.create_default_context(cafile=self.servers[0].bmc.ca_path)
        return httpx.Client(base_url=self.url(), verify=context, timeout=10, trust_env=False)

    def get(self, path: str = "Systems", **headers: str) -> httpx.Response:
        """What the first BMC answers to name and password, or to these headers."""
        bmc = self.servers[0].bmc
        with self.client() as made:
            return made.get(path, auth=None if headers else (bmc.username, bmc.password), headers=headers)

    def sushy(self, number: int = 0, *, password: str | None = None) -> Any:
        """A client of a BMC, logged in by a session."""
        bmc = self.servers[number].bmc
        login = sushy.auth.SessionOrBasicAuth(bmc.username, password or bmc.password)
        client: Any = sushy.Sushy  # `verify` may be a file, which its types do not know
        made = client(self.url(number), auth=login, verify=bmc.ca_path, server_side_retries=0)
        self._clients.append(made)
        return made

    def system(self, number: int = 0) -> Any:
        """The system of a BMC."""
        return self.sushy(number).get_system()

    def close(self) -> None:
        """Stop all."""
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@contextmanager
def world(directory: Path, count: int = 1) -> Generator[World, None, None]:
    """A rack whose state is in `directory`."""
    made = World(directory, count)
    try:
        yield made
    finally:
        made.close()


def has_ipmitool() -> bool:
    """Whether there is an ipmitool; it is installed where that can be."""
    setup.install(setup.missing([setup.Package("ipmitool", "/usr/bin/ipmitool")]), print)
    return shutil.which("ipmitool") is not None


def need_ipmitool() -> None:
    """The test is skipped where there is no ipmitool."""
    if not has_ipmitool():
        pytest.skip("ipmitool is not installed (package ipmitool)")


@contextmanager
def ipmi(lab: World) -> Generator[int]:
    """The IPMI side of a rack of one server, on loopback; its port."""
    known = facts.ensure(lab.layout, "simulated", kinds.of(Path("unused")), rack=1)
    rack = Known(servers=lab.servers, gateway=plan.GATEWAY, prefix=24, nameserver=plan.DNS)
    replace(known, rack=rack).save(lab.layout)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "lab.bmc.ipmi", "--state", str(lab.layout.state), "--port", str(port)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        assert serving.stdout.readline() == "IPMI of 1 BMCs\n"
        try:
            yield port
        finally:
            serving.kill()
