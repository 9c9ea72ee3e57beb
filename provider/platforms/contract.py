"""What the ephemeral machine, the gates and the removal need of a machine platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from metal_ipi.provider.resources.ephemeral_machine import MachineArgs

LEAVING = frozenset({"deprovisioning", "deleted"})
"""States of a machine on its way out."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine as the platform tells of it."""

    id: str
    hostname: str
    state: str
    """The platform's word: queued, provisioning, active, failed, deprovisioning, …"""
    console: str
    """Host of the serial-over-SSH console."""
    tags: tuple[str, ...] = ()
    public_ipv4: str | None = None
    private_ipv4: str | None = None
    public_ipv6: str | None = None
    progress: float | None = None
    """Percent provisioned."""
    bond: str | None = None
    """The id of the port that bonds its interfaces, where the platform has such ports."""
    outdated: bool = False
    """Of a machine that was found: whether it was made to boot something else than is wanted now."""

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out: not to be used again."""
        return self.state in LEAVING

    @property
    def ready(self) -> bool:
        """Whether it is active and its addresses are known."""
        return self.state == "active" and bool(self.public_ipv4 and self.private_ipv4)


def addresses(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The addresses of a server that is claimed, which its inputs tell."""
    public = inputs.get("publicIpv4")
    return {"publicIpv4": public, "privateIpv4": inputs.get("privateIpv4") or public}


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a machine."""

    type: str
    text: str
    state: str
    """Of a state the machine itself posted (Ignition does); empty otherwise."""


Spec = TypeVar("Spec", bound=MachineArgs)


class BgpDriver(Protocol):
    """A platform that machines announce addresses to."""

    async def open_bgp(self, machine_id: str) -> None:
        """Lets the machine announce IPv4 addresses to its neighbours; one that may already is left as it is."""
        ...

    async def close_bgp(self, machine_id: str) -> None:
        """Withdraws at once whatever the machine announces. Finding nothing is fine."""
        ...


class MachineDriver(ABC, Generic[Spec]):
    """A platform. Every call retries what may pass by itself, and raises RemoteError for the rest."""

    @property
    def bgp(self) -> BgpDriver | None:
        """What lets machines announce addresses; None where the platform has no BGP."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    @abstractmethod
    async def find(self, spec: Spec) -> list[Machine]:
        """What an earlier run that was killed made of it, without machines that are on their way out."""

    @abstractmethod
    async def create(self, spec: Spec) -> Machine:
        """Orders a machine, never two: after an unclear answer it looks for the machine before it asks again."""

    async def start(self, machine_id: str) -> None:
        """Boots a machine that was made, where making it does not; may be asked again."""

    @abstractmethod
    async def get(self, machine_id: str) -> Machine | None:
        """The machine, or None when there is none."""

    @abstractmethod
    async def delete(self, machine_id: str) -> None:
        """Asks for its removal. Finding none is fine."""

    async def events(self, machine_id: str) -> list[Event]:
        """What happened to it, newest first. Empty when there is none."""
        return []
