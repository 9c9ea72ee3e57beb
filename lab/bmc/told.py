"""The parts that a BMC reports for its server. They are made up, and differ from those of the emulated machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from lab.bmc.faults import Refused
from lab.bmc.names import TPMS
from lab.machines.base import MachineSpec

MEMORY_GIB, CPUS, DISKS = 64, 16, 32
"""What BMCs tell of their servers: GiB, threads, and how many times the size of a disk. The lab's machines are far
smaller, so that many fit (the Metal API's plans tell 64GB, too)."""
PARTS = ("system", "processor", "memory", "disk", "power supply")
HEALTHS = ("OK", "Warning", "Critical")


@dataclass(kw_only=True)
class Told:
    """It survives a restart."""

    memory_gib: float | None = MEMORY_GIB
    """None: the BMC does not report it."""
    cpus: int = CPUS
    """Threads."""
    disk_gib: float | None = None
    """The size of the first disk; None: DISKS times its own."""
    tpm: str = "none"
    """One of TPMS: lab machines have none."""
    link: bool = True
    """Whether the first network card has a link."""
    health: dict[str, str] = field(default_factory=dict[str, str])
    """Health by part (PARTS); for several parts of a kind, that of the first one. All others are OK."""
    uuid: str = ""
    """The UUID to report instead of its own."""
    serial: str = ""
    """The serial number to report instead of its own."""

    def disk_bytes(self, spec: MachineSpec, number: int) -> int:
        """The size of one of the disks."""
        if number == 0 and self.disk_gib is not None:
            return int(self.disk_gib * 2**30)
        return (spec.disks[number].size_mib << 20) * DISKS

    def changed(self, **changes: Any) -> Told:
        """A copy with other values; raises Refused."""
        if changes.get("tpm", "none") not in TPMS:
            raise Refused(f"tpm {changes['tpm']!r} is not one of {', '.join(TPMS)}")
        for part, health in changes.get("health", {}).items():
            if part not in PARTS or health not in HEALTHS:
                wanted = f"a part ({', '.join(PARTS)}) and one of {', '.join(HEALTHS)}"
                raise Refused(f"health {part}={health} is not {wanted}")
        return replace(self, **changes)
