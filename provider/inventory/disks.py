"""Which disks a machine may be installed to, as far as that is known before its live system runs.

The conditions are those of `boot.install.device` (components/boot/install.sh applies them). BMCs and Ironic may know
less about a server than its operating system, and may use other names. So a condition counts as not met only if that is
certain.

- Only the operating system knows `byId`, `deviceName`, `hctl` and the two parts of WWNs.
- SCSI cuts models to 16 characters, and reports the vendor of SATA disks as ATA: a difference proves nothing.
- SAS disks also have a World Wide Name for each port, and BMCs report one of them: a difference proves nothing.
- Some BMCs cut or pad serial numbers: if one number contains the other, they count as equal.
- Some BMCs round sizes: within 5 % of a limit nothing is certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.inventory.facts import Disk

_ROUNDED = 0.05
_TURNING = {"HDD": True, "SSD": False, "NVMe": False}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The disks that conditions allow."""

    certain: Sequence[Disk]
    """Disks that meet all conditions."""
    possible: Sequence[Disk]
    """Disks that meet at least all conditions that can be compared."""

    @property
    def all(self) -> Sequence[Disk]:
        """All of them."""
        return (*self.certain, *self.possible)


def choose(disks: Sequence[Disk], rules: Mapping[str, Any]) -> Choice:
    """The disks of a server that the conditions may mean; an entry with size 0 is not a disk."""
    verdicts = [(disk, set(_verdicts(disk, rules))) for disk in disks if disk.size_bytes != 0]
    certain = [disk for disk, found in verdicts if found <= {True}]
    possible = [disk for disk, found in verdicts if None in found and False not in found]
    if rules.get("smallest"):
        if possible or any(disk.size_bytes is None for disk in certain):
            return Choice(certain=[], possible=[*certain, *possible])  # each of them may be the smallest
        least = min((disk.size_bytes or 0 for disk in certain), default=0)
        certain = [disk for disk in certain if disk.size_bytes == least]
    return Choice(certain=certain, possible=possible)


def _verdicts(disk: Disk, rules: Mapping[str, Any]) -> Iterator[bool | None]:
    """For each condition whether the disk meets it; None if that is unknown."""
    for name, wanted in rules.items():
        if name == "smallest":
            continue
        if name in ("minSize", "maxSize"):
            yield _size(disk.size_bytes, float(wanted) * 2**30, least=name == "minSize")
        elif disk.raid:
            yield None
        elif name == "rotational":
            turning = _TURNING.get(disk.media_type or "")
            yield None if turning is None else turning is wanted
        elif name == "serial":
            yield _same(disk.serial, str(wanted))
        elif name == "wwn":
            yield True if _plain(str(wanted)) in disk.wwns else None
        else:
            value = {"model": disk.model, "vendor": disk.vendor}.get(name)
            yield True if value and _plain(str(wanted)) in _plain(value) else None


def _size(size: int | None, limit: float, *, least: bool) -> bool | None:
    if size is None or abs(size - limit) < limit * _ROUNDED:
        return None
    return (size > limit) is least


def _same(value: str | None, wanted: str) -> bool | None:
    if not value or not value.strip():
        return None
    one, other = _plain(value), _plain(wanted)
    return one in other or other in one


def _plain(text: str) -> str:
    """Only the letters and digits, in lower case, without the prefix for the kind of name."""
    return re.sub(r"[^0-9a-z]", "", re.sub(r"^(0x|eui\.|naa\.|uuid\.|nvme\.)", "", text.strip().lower()))


def plain_wwn(text: str) -> str:
    """A World Wide Name in the form of `Disk.wwns`."""
    return _plain(text)
