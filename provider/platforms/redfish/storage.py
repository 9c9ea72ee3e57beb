"""Disks, and volumes of RAID controllers, as BMCs report them.

Schema: Storage, Drive, Volume; SimpleStorage. BMCs differ:

- A disk that is part of no RAID is also listed as a volume, of type RawDevice or without a RAID type (iDRAC).
- Older schemas have VolumeType with other words instead of RAIDType.
- A volume lists its disks, or lists none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from metal_ipi.provider.inventory.disks import plain_wwn
from metal_ipi.provider.inventory.facts import Disk, Part
from metal_ipi.provider.platforms.redfish.documents import Document, Documents, link_of, member, number, or_none
from metal_ipi.provider.platforms.redfish.health import part

_RAID = {"NonRedundant": "RAID0", "Mirrored": "RAID1", "StripedWithParity": "RAID5", "SpannedMirrors": "RAID10",
         "SpannedStripesWithParity": "RAID50"}  # fmt: skip
_RAW = ("RawDevice", "None")


def disks(documents: Documents, system: Document) -> Sequence[Disk]:
    """All disks, including those that RAID volumes consist of. Raises Untold."""
    drives = or_none(lambda: [_disk(drive) for drive in _drives(documents, system)])
    return drives or _simple(documents, system)


def seen(documents: Documents, system: Document) -> Sequence[Disk]:
    """What an operating system sees: volumes, and disks that are in no volume. Raises Untold."""
    volumes: list[Disk] = []
    within: set[str | None] = set()
    for storage in documents.listed(system, "Storage"):
        for volume in (or_none(lambda: documents.listed(storage, "Volumes")) or ()) if storage.get("Drives") else ():  # noqa: B023
            raid = _raid(volume)
            if raid is not None:
                volumes.append(_volume(volume, raid))
                within |= {link_of(link) for link in member(volume, "Links").get("Drives") or ()}
    drives = [_disk(drive) for drive in _drives(documents, system) if link_of(drive) not in within]
    return [*volumes, *drives]


def parts(documents: Documents, system: Document) -> Iterator[Part]:
    """The health of all disks. Raises Untold."""
    for drive in _drives(documents, system):
        yield from part("disk", _name(drive), drive, failing=drive.get("FailurePredicted") is True)


def _drives(documents: Documents, system: Document) -> Iterator[Document]:
    """The disks that are present: a slot may be listed without a disk."""
    for storage in documents.listed(system, "Storage"):
        for drive in documents.listed(storage, "Drives") if storage.get("Drives") else ():
            if member(drive, "Status").get("State") != "Absent":
                yield drive


def _disk(drive: Document) -> Disk:
    listed: Any = drive.get("Identifiers")
    names = [each.get("DurableName") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return Disk(
        name=_name(drive),
        size_bytes=_bytes(drive),
        model=_said(drive, "Model"),
        serial=_said(drive, "SerialNumber"),
        media_type=_said(drive, "MediaType"),
        vendor=_said(drive, "Manufacturer"),
        wwns=[plain_wwn(name) for name in names if isinstance(name, str)],
    )


def _volume(volume: Document, raid: str) -> Disk:
    return Disk(name=_name(volume), size_bytes=_bytes(volume), raid=raid)


def _raid(volume: Document) -> str | None:
    """The kind of RAID; None if the volume is a single disk."""
    kind, former = volume.get("RAIDType"), volume.get("VolumeType")
    if former in _RAW or kind == "None":
        return None
    return kind if isinstance(kind, str) else _RAID.get(str(former))


def _simple(documents: Documents, system: Document) -> Sequence[Disk]:
    devices = [
        device
        for storage in documents.listed(system, "SimpleStorage")
        for device in or_none(lambda: documents.listed(storage, "Devices")) or ()  # noqa: B023
        if device.get("CapacityBytes")
    ]
    return [Disk(name=_name(each), size_bytes=_bytes(each), model=_said(each, "Model")) for each in devices]


def _name(document: Document) -> str:
    return str(document.get("Name") or document.get("Id"))


def _said(document: Document, key: str) -> str | None:
    found = document.get(key)
    return found if isinstance(found, str) and found.strip() else None


def _bytes(document: Document) -> int | None:
    found = number(document.get("CapacityBytes"))
    return None if found is None else int(found)
