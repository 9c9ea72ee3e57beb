"""The seam between the Metal API and whatever plays the servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

BootDevice = Literal["network", "disk", "cd"]
Power = Literal["on", "off"]
BootOrder = Callable[[str], tuple[BootDevice, ...]]
"""Returns the boot devices that a machine's firmware tries, in order. It is called at every reset, with the machine's
id."""


def network_only(_machine_id: str) -> tuple[BootDevice, ...]:
    """The order of a machine that has nothing to boot but the network."""
    return ("network",)


class BackendError(Exception):
    """A machine back end could not do what it was asked; the text is fit for a device event."""


async def run(*command: str, stdin: str = "", called: str = "") -> str:
    """Run a program; returns its output. Raises BackendError with its error output; `called` is its name in the
    message."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        raise BackendError(f"{command[0]}: {error.strerror or error}") from error
    out, err = await process.communicate(stdin.encode())
    if process.returncode:
        raise BackendError(f"{called or ' '.join(command)}: {err.decode(errors='replace').strip()}")
    return out.decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class Address:
    """One address of a machine. Metal hands IPv4 out as a /31 with the gateway on the even side."""

    address: str
    prefix: int
    gateway: str
    public: bool


@dataclass(frozen=True, kw_only=True)
class Disk:
    """One disk of a machine. What is on it stays until it is blanked, or the machine deleted."""

    serial: str
    """Its serial number, by which the operating system finds it below /dev/disk/by-id."""
    size_mib: int
    rotational: bool = False
    """Whether it says that it rotates."""


@dataclass(frozen=True, kw_only=True)
class MachineSpec:
    """What a back end needs to boot a machine; the machine gets everything else over the network."""

    id: str
    hostname: str
    mac: str
    addresses: tuple[Address, ...]
    """The first is the public IPv4, the only one handed out by DHCP."""
    memory_mib: int
    cpus: int
    ipv6: Address | None = None
    """Its IPv6 address, if its system uses router advertisements or has it in its configuration."""
    disks: tuple[Disk, ...] = ()
    firmware: Literal["bios", "uefi"] = "bios"
    architecture: str = "x86_64"
    """Or `aarch64`, which only simulated machines can be."""
    secure_boot: bool = False
    """Whether its firmware, UEFI then, starts nothing that is not signed."""
    medium: str = ""
    """The file of the disc in its drive; it is there while `cd` is among what is booted."""
    further_macs: tuple[str, ...] = ()
    """MAC addresses of further network cards, which are in the same network; the firmware boots from the first card."""
    boot_url: str = ""
    """What DHCP tells it to boot; empty: the metadata service's script for this machine, as on Metal."""


def cards(spec: MachineSpec) -> dict[str, str]:
    """MAC addresses of a machine's network cards, by the names that its kernel gives them."""
    return {f"eth{number}": mac for number, mac in enumerate((spec.mac, *spec.further_macs))}


class MachineBackend(Protocol):
    """The interface of a back end for the API. All calls can be repeated safely."""

    async def open(self) -> None:
        """Start what is needed (hypervisor, DHCP, SSH); raises BackendError."""
        ...

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        """(Re)boot from what `order` says, then and at every later reset of the machine."""
        ...

    async def power_off(self, machine_id: str) -> None:
        """Cut the power; nothing happens when it is off or unknown."""
        ...

    async def blank(self, machine_id: str, serials: Collection[str]) -> None:
        """Cut the power and have some of its disks be as they were when it was new."""
        ...

    async def delete(self, machine_id: str) -> None:
        """Cut the power and forget everything about the machine."""
        ...

    def console(self, machine_id: str) -> bytes:
        """Everything the serial console printed so far; empty for an unknown machine."""
        ...

    async def close(self) -> None:
        """Stop everything `open` and `power_on` started."""
        ...


class RackBackend(MachineBackend, Protocol):
    """What the BMCs of a rack ask besides. A reset is `power_on`: it reboots a machine that is on.

    A machine that powers itself off stays off. One that resets itself boots again at once, from what its order says
    then. Disks are blank when the machine is powered on for the first time, and go with `delete`.
    """

    async def power_state(self, machine_id: str) -> Power:
        """Whether the machine has power at this moment; an unknown one has none."""
        ...

    async def shutdown(self, machine_id: str) -> None:
        """Press the power button and return: an operating system that listens shuts down and powers off, some time."""
        ...


@runtime_checkable
class SurvivesRestart(Protocol):
    """A back end whose machines outlive the API process; those it names are not booted again at start."""

    def running(self) -> frozenset[str]:
        """Ids of the machines that are up without having been powered on by this process."""
        ...

    def attend(self, machine_id: str, order: BootOrder) -> None:
        """Ask `order` from now on about a machine that `running` named; it is not rebooted."""
        ...
