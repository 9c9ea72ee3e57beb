"""GUID partition tables (UEFI specification, 5.3), of the node image's disk and of simulated machines' disks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4
from zlib import crc32

SECTOR = 512
BIOS_BOOT = UUID("21686148-6449-6e6f-744e-656564454649")
EFI_SYSTEM = UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
LINUX = UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
LINUX_ROOT_X86_64 = UUID("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")

_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_ENTRY = struct.Struct("<16s16sQQQ72s")
_ENTRIES = 128
_RESERVED = 1 + _ENTRIES * _ENTRY.size // SECTOR
"""Sectors at either end of the disk: a header and the entries."""
HEAD_SIZE = (1 + _RESERVED) * SECTOR
"""Bytes at the beginning of a disk that hold its boot sector and its table."""


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One entry of the table, in bytes from the beginning of the disk."""

    number: int
    name: str
    kind: UUID
    start: int
    size: int
    id: UUID = field(default_factory=uuid4)


def table(disk_size: int, partitions: Sequence[Partition], disk_id: UUID) -> tuple[bytes, bytes]:
    """The first and the last sectors of a disk: protective boot sector, table; the table's copy."""
    last = disk_size // SECTOR - 1
    entries = b"".join(
        _ENTRY.pack(
            *(partition.kind.bytes_le, partition.id.bytes_le, partition.start // SECTOR),
            *((partition.start + partition.size) // SECTOR - 1, 0, partition.name.encode("utf-16-le")),
        )
        for partition in partitions
    ).ljust(_ENTRIES * _ENTRY.size, b"\0")

    def header(mine: int, other: int, at: int) -> bytes:
        def packed(checksum: int) -> bytes:
            return _HEADER.pack(
                *(b"EFI PART", 0x10000, _HEADER.size, checksum, 0, mine, other, 1 + _RESERVED, last - _RESERVED),
                *(disk_id.bytes_le, at, _ENTRIES, _ENTRY.size, crc32(entries)),
            )

        return packed(crc32(packed(0))).ljust(SECTOR, b"\0")

    protective = bytes(446) + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff" * 3, 1, min(last, 0xFFFFFFFF))
    boot_sector = protective.ljust(510, b"\0") + b"\x55\xaa"
    return boot_sector + header(1, last, 2) + entries, entries + header(last, 1, last - _RESERVED + 1)


def partitions(head: bytes) -> tuple[Partition, ...]:
    """What the first HEAD_SIZE bytes of a disk say; none when there is no table, or a damaged one."""
    if len(head) < HEAD_SIZE or head[510:512] != b"\x55\xaa":
        return ()
    header = head[SECTOR : SECTOR + _HEADER.size]
    signature, _, _, checksum, *_, count, width, entries_checksum = _HEADER.unpack(header)
    entries = head[2 * SECTOR : 2 * SECTOR + _ENTRIES * _ENTRY.size]
    plain = header[:16] + bytes(4) + header[20:]
    if signature != b"EFI PART" or checksum != crc32(plain) or entries_checksum != crc32(entries):
        return ()
    found: list[Partition] = []
    for number in range(min(count, _ENTRIES)):
        kind, own, first, last, _, name = _ENTRY.unpack_from(entries, number * width)
        if any(kind):
            found.append(
                Partition(
                    number=number + 1,
                    name=name.decode("utf-16-le").rstrip("\0"),
                    kind=UUID(bytes_le=kind),
                    start=first * SECTOR,
                    size=(last - first + 1) * SECTOR,
                    id=UUID(bytes_le=own),
                )
            )
    return tuple(found)
