"""The interface of machine platforms for the ephemeral machine, the gates and the removal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from metal_ipi.provider.resources.ephemeral_machine import MachineArgs

LEAVING = frozenset({"deprovisioning", "deleted"})
"""The states of a machine that is being deleted."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine as the platform reports it."""

    id: str
    hostname: str
    state: str
    """The platform's state: queued, provisioning, active, failed, deprovisioning, …"""
    console: str
    """The host of the serial-over-SSH console."""
    tags: tuple[str, ...] = ()
    public_ipv4: str | None = None
    private_ipv4: str | None = None
    public_ipv6: str | None = None
    progress: float | None = None
    """Progress of provisioning in percent."""
    bond: str | None = None
    """The id of the port that bonds its interfaces, if the platform has such ports."""
    outdated: bool = False
    """Set by `find`: whether the machine was made to boot something else than is wanted now."""

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted, so that it must not be used again."""
        return self.state in LEAVING

    @property
    def ready(self) -> bool:
        """Whether it is active and its addresses are known."""
        return self.state == "active" and bool(self.public_ipv4 and self.private_ipv4)


def addresses(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The addresses of a claimed server, from its inputs."""
    public = inputs.get("publicIpv4")
    return {"publicIpv4": public, "privateIpv4": inputs.get("privateIpv4") or public}


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a machine."""

    type: str
    text: str
    state: str
    """The state that the machine itself posted (Ignition does); empty otherwise."""


Spec = TypeVar("Spec", bound=MachineArgs)


class BgpDriver(Protocol):
    """A platform to which machines announce addresses over BGP."""

    async def open_bgp(self, machine_id: str) -> None:
        """Allow the machine to announce IPv4 addresses to its neighbours. No change if it may already."""
        ...

    async def close_bgp(self, machine_id: str) -> None:
        """Withdraw at once everything that the machine announces. No session is not an error."""
        ...


class MachineDriver(ABC, Generic[Spec]):
    """A platform. Every call retries transient errors, and raises RemoteError for others."""

    @property
    def bgp(self) -> BgpDriver | None:
        """The platform's BGP functions; None if it has no BGP."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    @abstractmethod
    async def find(self, spec: Spec) -> list[Machine]:
        """The machines that an earlier, killed run made for this specification, except those that are being deleted."""

    @abstractmethod
    async def create(self, spec: Spec) -> Machine:
        """Order a machine, but never two: after an unclear answer it looks for the machine before it repeats the
        order."""

    async def start(self, machine_id: str) -> None:
        """Boot a machine that was made, if making it does not boot it. May be repeated."""

    @abstractmethod
    async def get(self, machine_id: str) -> Machine | None:
        """The machine; None if it does not exist."""

    @abstractmethod
    async def delete(self, machine_id: str) -> None:
        """Request its deletion. A missing machine is not an error."""

    async def events(self, machine_id: str) -> list[Event]:
        """Its events, newest first; empty if the platform has none."""
        return []
