"""The hardware of one server before it is switched on. None means that it is not reported; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Link = Literal["up", "down"]
Tpm = Literal["2.0", "1.2", "off", "none"]
"""`off`: there is one of unknown version, and it is disabled."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A disk, or a volume of a RAID controller, which operating systems see as a disk."""

    name: str
    size_bytes: int | None = None
    model: str | None = None
    serial: str | None = None
    media_type: str | None = None
    """`SSD`, `HDD`, …"""
    vendor: str | None = None
    wwns: Sequence[str] = ()
    """World Wide Names, in lower case and without prefix."""
    raid: str | None = None
    """The kind of a RAID volume, `RAID1`. What operating systems see as its model, serial number and kind is
    unknown."""

    def to_wire(self) -> dict[str, Any]:
        """The form for the state, without unknown values."""
        values = {"name": self.name, "sizeBytes": self.size_bytes, "model": self.model, "serial": self.serial,
                  "mediaType": self.media_type}  # fmt: skip
        return {key: value for key, value in values.items() if value is not None}

    def __str__(self) -> str:
        size = "of unknown size" if self.size_bytes is None else f"{self.size_bytes / 10**9:.0f} GB"
        kind = f"volume of {self.raid}" if self.raid else self.media_type
        words = [size, kind, self.model, f"serial {self.serial}" if self.serial else None]
        return f"{self.name} ({', '.join(word for word in words if word)})"


@dataclass(frozen=True, kw_only=True)
class Card:
    """A port of a network card."""

    mac: str
    """In lower case, with colons."""
    link: Link | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """A component with a health status."""

    kind: Literal["system", "processor", "memory", "disk", "power supply"]
    name: str
    health: Literal["OK", "Warning", "Critical"]
    """`Warning` also for a disk that is expected to fail."""


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A virtual drive for discs."""

    name: str
    disc: str | None = None
    """The disc in it, as text."""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The hardware of a server."""

    where: str = ""
    """The server's name in messages; empty if it is not known yet which server it will be."""
    power: str | None = None
    """`On`, `Off`, `PoweringOn`, `PoweringOff` or `Unknown`."""
    manufacturer: str | None = None
    model: str | None = None
    serial: str | None = None
    uuid: str | None = None
    """In lower case."""
    architecture: str | None = None
    """`x86_64`, `aarch64`, or another one."""
    memory_mib: float | None = None
    cpus: int | None = None
    """The number of threads; of cores if threads are not reported."""
    disks: Sequence[Disk] | None = None
    cards: Sequence[Card] | None = None
    boot_mode: str | None = None
    """`uefi` or `bios`."""
    boot_modes: Sequence[str] | None = None
    """The boot modes that can be set."""
    boot_targets: Sequence[str] | None = None
    """The boot sources that can be set, with Redfish's names."""
    override: str | None = None
    """What it boots at every start instead of its own order, with Redfish's names."""
    secure_boot: bool | None = None
    """Whether its firmware starts only signed programs."""
    tpm: Tpm | None = None
    parts: Sequence[Part] | None = None
    clock: tuple[datetime, datetime] | None = None
    """The time of the BMC's clock, and our time at that moment."""
    drives: Sequence[Drive] | None = None
    firmware: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions of `BIOS` and `BMC`."""
