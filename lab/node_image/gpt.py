"""A GUID partition table: protective MBR, header and entries at the start, and their copies at the end."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

SECTOR = 512
ALIGNMENT = 1 << 20
_ENTRIES, _ENTRY_SIZE = 128, 128
_TABLE_SECTORS = _ENTRIES * _ENTRY_SIZE // SECTOR

BIOS_BOOT = UUID("21686148-6449-6e6f-744e-656564454649")
EFI_SYSTEM = UUID("c12a7328-f81f-11d2-ba4b-00c04fc93ec9")
LINUX = UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
LINUX_ROOT_X86_64 = UUID("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition and what is in it."""

    name: str
    kind: UUID
    id: UUID
    data: bytes


def build(disk_id: UUID, partitions: Sequence[Partition]) -> tuple[bytearray, dict[str, int]]:
    """A disk that has these partitions, each from a full MiB on, and where each begins (in bytes)."""
    starts: dict[str, int] = {}
    end = ALIGNMENT
    for partition in partitions:
        starts[partition.name] = end
        end += len(partition.data) + -len(partition.data) % ALIGNMENT
    disk = bytearray(end + ALIGNMENT)
    for partition in partitions:
        disk[starts[partition.name] : starts[partition.name] + len(partition.data)] = partition.data
    entries = b"".join(_entry(partition, starts[partition.name]) for partition in partitions)
    table = entries.ljust(_ENTRIES * _ENTRY_SIZE, b"\0")
    last = len(disk) // SECTOR - 1
    _put(disk, 0, _protective_mbr(last))
    _put(disk, 1, _header(disk_id, table, here=1, other=last, table_at=2, last=last))
    _put(disk, 2, table)
    _put(disk, last - _TABLE_SECTORS, table)
    _put(disk, last, _header(disk_id, table, here=last, other=1, table_at=last - _TABLE_SECTORS, last=last))
    return disk, starts


def _put(disk: bytearray, sector: int, data: bytes) -> None:
    disk[sector * SECTOR : sector * SECTOR + len(data)] = data


def _entry(partition: Partition, start: int) -> bytes:
    first = start // SECTOR
    last = first + (len(partition.data) + -len(partition.data) % ALIGNMENT) // SECTOR - 1
    name = partition.name.encode("utf-16-le")
    return struct.pack("<16s16sQQQ72s", partition.kind.bytes_le, partition.id.bytes_le, first, last, 0, name)


def _header(disk_id: UUID, table: bytes, *, here: int, other: int, table_at: int, last: int) -> bytes:
    def pack(checksum: int) -> bytes:
        return struct.pack(
            "<8sIIIIQQQQ16sQIII",
            *(b"EFI PART", 0x10000, 92, checksum, 0, here, other, 2 + _TABLE_SECTORS, last - _TABLE_SECTORS - 1),
            *(disk_id.bytes_le, table_at, _ENTRIES, _ENTRY_SIZE, zlib.crc32(table)),
        )

    return pack(zlib.crc32(pack(0)))


def _protective_mbr(last: int) -> bytes:
    entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, min(last, 0xFFFFFFFF))
    return b"\0" * 446 + entry + b"\0" * 48 + b"\x55\xaa"
