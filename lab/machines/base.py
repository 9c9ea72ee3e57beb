"""The seam between the Metal API and whatever plays the servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class BackendError(Exception):
    """A machine back end could not do what it was asked; the text is fit for a device event."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """One IPv4 address of a machine, as Metal hands them out: a /31 with the gateway on the even side."""

    address: str
    prefix: int
    gateway: str
    public: bool


@dataclass(frozen=True, kw_only=True)
class MachineSpec:
    """What a back end must know to boot a machine; everything else the machine asks for itself over the network."""

    id: str
    hostname: str
    mac: str
    addresses: tuple[Address, ...]
    """The first is the public IPv4, the only one handed out by DHCP."""
    memory_mib: int
    cpus: int


class MachineBackend(Protocol):
    """What the API asks of a back end. All calls are safe to repeat."""

    async def open(self) -> None:
        """Start what is needed (hypervisor, DHCP, SSH); raises BackendError."""
        ...

    async def power_on(self, spec: MachineSpec) -> None:
        """(Re)boot from the network: DHCP or its like, then http://<metadata>/ipxe/<id>."""
        ...

    async def power_off(self, machine_id: str) -> None:
        """Cut the power; nothing happens when it is off or unknown."""
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


@runtime_checkable
class SurvivesRestart(Protocol):
    """A back end whose machines outlive the API process; those it names are not booted again at start."""

    def running(self) -> frozenset[str]:
        """Ids of the machines that are up without having been powered on by this process."""
        ...
