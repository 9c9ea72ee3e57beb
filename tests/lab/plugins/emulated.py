"""The lab's own emulation of the Metal API on loopback, with machines that boot as soon as they have power."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from lab.machines.base import BootOrder, MachineSpec, network_only
from lab.metal_api.bgp import LOCAL_ASN, request_config
from lab.metal_api.hardware_reservations import sell
from lab.metal_api.provisioning import Pace
from lab.metal_api.request_log import RequestLog
from lab.metal_api.state import SystemClock
from tests.lab.metal_api.harness import IDENTITY, FakeMachines, World, served

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

    world: World

    def __init__(self) -> None:
        super().__init__()
        self._booting: set[asyncio.Task[None]] = set()

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        await super().power_on(spec, order)
        task = asyncio.create_task(self._boot(spec.id))
        self._booting.add(task)
        task.add_done_callback(self._booting.discard)

    async def _boot(self, machine: str) -> None:
        async with self.world.machine("127.0.0.1") as client:
            while (await client.get(f"/ipxe/{machine}")).status_code != 200:  # noqa: ASYNC110 - as iPXE does
                await asyncio.sleep(0.02)


class Emulation:
    """A running API: where it is, and what it has."""

    def __init__(self, machines: Booting, log: RequestLog, url: str) -> None:
        self.machines = machines
        self.log = log
        self.url = url
        # A client loads all authorities when it is made, which takes longer than what it is asked. Each request has a
        # connection of its own: faults end connections.
        alone = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(headers={"X-Auth-Token": IDENTITY.token}, verify=False, limits=alone)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What somebody else does at the API, or the lab's own controls under /lab."""
        url = self.url.replace("/metal/v1", "") if path.startswith("/lab/") else self.url
        answer = self._client.request(method, f"{url}{path}", json=body)
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
    machines = Booting()
    pace = Pace(queued=0.05, provisioning=0.05, power=0.05, deprovisioning=0.05)
    with served(directory, clock=SystemClock(), machines=machines, pace=pace) as (url, lab):
        machines.world = lab
        project, bgp = IDENTITY.project_id, {"deployment_type": "local", "asn": LOCAL_ASN}
        lab.inside(lambda: request_config(lab.account, project, bgp))
        lab.inside(lambda: _sell(lab))
        made = Emulation(machines, lab.log, url)
        try:
            yield made
        finally:
            made.close()


def _sell(lab: World) -> None:
    sell(lab.account, IDENTITY.project_id, {"plan": "c3.small.x86", "facility": "lab1"})
