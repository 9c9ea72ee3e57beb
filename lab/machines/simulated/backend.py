"""All simulated machines: the RackBackend, in the process of the API or of the BMCs that command them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from lab.machines.base import BootOrder, MachineSpec, Power, network_only, run
from lab.machines.simulated.fetch import Downloads
from lab.machines.simulated.machine import Machine
from lab.machines.simulated.record import saved
from lab.machines.simulated.surroundings import Surroundings

RANGES = ("198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15")
"""Machine addresses; the kernel is told that all of them are this host's (AnyIP)."""


class SimulatedBackend:
    """Machines are directories below `directory`; they survive a restart of this process."""

    def __init__(self, directory: Path, around: Surroundings, *, ranges: tuple[str, ...] = RANGES) -> None:
        self._directory = directory
        self._around = around
        self._ranges = ranges
        self._downloads = Downloads()
        self._machines: dict[str, Machine] = {}
        self._running: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Claim the addresses; go on with the machines of a former process."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for entry in self._ranges:
            await run("ip", "route", "replace", "local", entry, "dev", "lo")
        resumed: set[str] = set()
        for directory in sorted(self._directory.iterdir()):
            spec = saved(directory)
            if spec is not None:
                machine = self._machine(spec)
                await machine.resume()
                if machine.power == "on":
                    resumed.add(spec.id)
        self._running = frozenset(resumed)

    def running(self) -> frozenset[str]:
        """Machines that `open` brought back."""
        return self._running

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        """Boot, in the background."""
        before = self._machines.get(spec.id)
        if before is not None and before.spec != spec:
            await before.power_off()
            del self._machines[spec.id]
        machine = self._machine(spec)
        machine.order = order
        machine.put_in(spec.disks)
        await machine.power_on()

    def attend(self, machine_id: str, order: BootOrder) -> None:
        """Set the boot order of a machine that `open` restored."""
        if machine := self._machines.get(machine_id):
            machine.order = order

    async def power_state(self, machine_id: str) -> Power:
        """Whether it is switched on, booted or not."""
        machine = self._machines.get(machine_id)
        return machine.power if machine is not None else "off"

    async def shutdown(self, machine_id: str) -> None:
        """Ask its operating system to power off; one that is not up does not hear it."""
        if machine := self._machines.get(machine_id):
            machine.shutdown()

    async def power_off(self, machine_id: str) -> None:
        """Cut off, keep the directory."""
        if machine := self._machines.get(machine_id):
            await machine.power_off()

    async def blank(self, machine_id: str, serials: Collection[str]) -> None:
        """Cut off, remove disks: the next boot makes new ones."""
        if machine := self._machines.get(machine_id):
            await machine.power_off()
            machine.blank(serials)

    async def delete(self, machine_id: str) -> None:
        """Cut off, remove everything."""
        if machine := self._machines.pop(machine_id, None):
            await machine.power_off()
            await asyncio.to_thread(machine.remove)

    def console(self, machine_id: str) -> bytes:
        """The machine's console output."""
        machine = self._machines.get(machine_id)
        return machine.printed() if machine is not None else b""

    async def close(self) -> None:
        """Stop everything, keep the directories: the machines are resumed by the next process."""
        await asyncio.gather(*(machine.detach() for machine in self._machines.values()))
        for entry in self._ranges:
            await run("ip", "route", "del", "local", entry, "dev", "lo")

    def _machine(self, spec: MachineSpec) -> Machine:
        if spec.id not in self._machines:
            self._machines[spec.id] = Machine(spec, self._directory / spec.id, self._around, self._downloads)
        return self._machines[spec.id]
