"""Partition tables and file system labels, as bytes: what blkid, wipefs and firmware look for on a disk."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4
from zlib import crc32

SECTOR = 512
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_ENTRY = struct.Struct("<16s16sQQQ72s")
_ENTRIES = 128
_RESERVED = 1 + _ENTRIES * _ENTRY.size // SECTOR
"""Sectors at either end of the disk: a header and the entries."""
HEAD_SIZE = (1 + _RESERVED) * SECTOR
"""Bytes at the beginning of a disk that hold its boot sector and its table."""
_MAGIC, _LABEL = 0x38, 0x68


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One entry of the table, in bytes from the beginning of the disk."""

    number: int
    name: str
    kind: UUID
    start: int
    size: int


def table(disk_size: int, partitions: Sequence[Partition]) -> tuple[bytes, bytes]:
    """The first and the last sectors of a disk: protective boot sector, table; the table's copy."""
    last = disk_size // SECTOR - 1
    identity = uuid4().bytes_le
    entries = b"".join(
        _ENTRY.pack(
            partition.kind.bytes_le,
            uuid4().bytes_le,
            partition.start // SECTOR,
            (partition.start + partition.size) // SECTOR - 1,
            0,
            partition.name.encode("utf-16-le"),
        )
        for partition in partitions
    ).ljust(_ENTRIES * _ENTRY.size, b"\0")

    def header(mine: int, other: int, at: int) -> bytes:
        def packed(checksum: int) -> bytes:
            return _HEADER.pack(
                b"EFI PART", 0x10000, _HEADER.size, checksum, 0, mine, other, 1 + _RESERVED, last - _RESERVED,
                identity, at, _ENTRIES, _ENTRY.size, crc32(entries),
            )  # fmt: skip

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
        kind, _, first, last, _, name = _ENTRY.unpack_from(entries, number * width)
        if any(kind):
            found.append(
                Partition(
                    number=number + 1,
                    name=name.decode("utf-16-le").rstrip("\0"),
                    kind=UUID(bytes_le=kind),
                    start=first * SECTOR,
                    size=(last - first + 1) * SECTOR,
                )
            )
    return tuple(found)


SUPERBLOCK = (1024, 1024)
"""Where a file system of the ext family has its superblock: offset and size."""


def superblock(label: str, identity: UUID, size: int) -> bytes:
    """As much of an ext4 superblock as tells its label and UUID."""
    block = bytearray(SUPERBLOCK[1])
    struct.pack_into("<II", block, 0, 128, size // 4096)
    struct.pack_into("<I", block, 0x18, 2)  # blocks of 4 KiB
    struct.pack_into("<HH", block, _MAGIC, 0xEF53, 1)
    struct.pack_into("<I", block, 0x4C, 1)
    struct.pack_into("<III", block, 0x5C, 0x4, 0x40, 0x1)  # a journal, extents, sparse superblocks
    struct.pack_into("<16s16s", block, _LABEL, identity.bytes, label.encode())
    return bytes(block)


def label(block: bytes) -> tuple[str, UUID] | None:
    """Label and UUID of a superblock; None when it is none."""
    if len(block) < SUPERBLOCK[1] or block[_MAGIC : _MAGIC + 2] != b"\x53\xef":
        return None
    identity, name = struct.unpack_from("<16s16s", block, _LABEL)
    return name.rstrip(b"\0").decode(errors="replace"), UUID(bytes=identity)
