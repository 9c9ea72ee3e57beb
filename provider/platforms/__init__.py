"""Machine platforms: what the ephemeral machine, the gates and the removal need of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from provider.configuration import Settings
from provider.errors import InvalidInputs

PLATFORMS = ("equinix-metal",)


@dataclass(frozen=True, kw_only=True)
class MachineSpec:
    """A machine to make."""

    project_id: str
    hostname: str
    plan: str
    metro: str | None
    facilities: tuple[str, ...]
    operating_system: str
    ipxe_script_url: str | None
    always_pxe: bool
    user_data: str | None
    tags: tuple[str, ...]
    project_ssh_key_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine as the platform tells of it."""

    id: str
    hostname: str
    state: str
    """The platform's word: queued, provisioning, active, failed, deprovisioning, …"""
    tags: tuple[str, ...]
    public_ipv4: str | None
    private_ipv4: str | None
    public_ipv6: str | None
    console: str
    """Host of the serial-over-SSH console."""
    progress: float | None
    """Percent provisioned."""

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out: not to be used again."""
        return self.state in ("deprovisioning", "deleted")

    @property
    def ready(self) -> bool:
        """Whether it is active and its addresses are known."""
        return self.state == "active" and bool(self.public_ipv4 and self.private_ipv4)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a machine."""

    type: str
    text: str
    state: str
    """Of a state the machine itself posted (Ignition does); empty otherwise."""


class MachineDriver(Protocol):
    """A platform. Every call retries what may pass by itself, and raises RemoteError for the rest."""

    async def __aenter__(self) -> MachineDriver: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def find(self, project_id: str, tags: Sequence[str]) -> list[Machine]:
        """Machines of a project that carry all the tags, without those that are on their way out."""
        ...

    async def create(self, spec: MachineSpec) -> Machine:
        """Orders a machine, never two: after an unclear answer it looks for the machine before it asks again."""
        ...

    async def get(self, machine_id: str) -> Machine | None:
        """The machine, or None when there is none."""
        ...

    async def delete(self, machine_id: str) -> None:
        """Asks for its removal. Finding none is fine."""
        ...

    async def events(self, machine_id: str) -> list[Event]:
        """What happened to it, newest first. Empty when there is none."""
        ...

    async def open_bgp(self, machine_id: str) -> None:
        """Lets the machine announce IPv4 addresses to its neighbours; one that may already is left as it is."""
        ...

    async def close_bgp(self, machine_id: str) -> None:
        """Withdraws at once whatever the machine announces. Finding nothing is fine."""
        ...


def open_driver(platform: str, settings: Settings) -> MachineDriver:
    """The driver of a platform; contacts nothing yet."""
    if platform == "equinix-metal":
        from provider.platforms.equinix_metal import EquinixMetal

        return EquinixMetal(settings.need_metal())
    raise InvalidInputs(f"platform {platform} is not known; known are {', '.join(PLATFORMS)}")


async def is_gone(machine_id: str | None, settings: Settings) -> bool:
    """Whether a machine does not exist any more; False where no platform can be asked. Raises ProviderError."""
    if not machine_id or settings.metal is None:
        return False
    async with open_driver("equinix-metal", settings) as driver:
        return await driver.get(machine_id) is None


def identifying(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags a machine is found by after a crash: its stack, its cluster and its name."""
    return tuple(tag for tag in tags if tag.startswith(("metal-ipi:stack=", "metal-ipi:cluster=", "metal-ipi:name=")))


__all__ = ["PLATFORMS", "Event", "Machine", "MachineDriver", "MachineSpec", "identifying", "is_gone", "open_driver"]
