"""The disks of a simulated machine: files with real partition tables and labels, and a directory per file system.

What a file system holds is in a directory that is named by its UUID. Where nothing on a disk says that UUID any more,
because it was wiped or written anew, nobody finds the directory again.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from lab import gpt
from lab.gpt import Partition
from lab.machines import base

MIB = 1 << 20
_LAYOUT = (
    ("BIOS-BOOT", gpt.BIOS_BOOT, 1),
    ("EFI-SYSTEM", gpt.EFI_SYSTEM, 127),
    ("boot", gpt.LINUX, 384),
    ("root", gpt.LINUX, 512),
)
"""Partitions of CoreOS's image: name, type, MiB."""
IMAGE_MIB = 2 + sum(size for _, _, size in _LAYOUT)
"""The image's size; what a disk has besides is left as it is."""
SUPERBLOCK_AT, _SUPERBLOCK_SIZE = 1024, 1024
"""Where file systems of the ext family have their superblock."""
_MAGIC, _LABEL = 0x38, 0x68


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """A file system that is on a disk now."""

    device: str
    """Name of its partition, such as vda3."""
    label: str
    identity: UUID
    directory: Path
    """The directory with its content."""


class Disk:
    """One disk: a sparse file."""

    def __init__(self, known: base.Disk, index: int, directory: Path) -> None:
        self.name = f"vd{chr(ord('a') + index)}"
        """The kernel's name of the disk."""
        self.serial = known.serial
        self.rotational = known.rotational
        self.size = known.size_mib * MIB
        self.path = directory / known.serial
        self._filesystems = directory / "filesystems"

    def make(self) -> None:
        """Create it blank, unless it exists."""
        self._filesystems.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.path.open("ab") as stream:
            stream.truncate(self.size)

    def partitions(self) -> tuple[Partition, ...]:
        """The partitions of its table; none without a valid table."""
        return gpt.partitions(self._read(0, gpt.HEAD_SIZE))

    def has_boot_sector(self) -> bool:
        """Whether firmware would start what is on it."""
        return self._read(510, 2) == b"\x55\xaa"

    def filesystem(self, partition: Partition) -> FileSystem | None:
        """The file system on a partition, if the lab supports it."""
        block = self._read(partition.start + SUPERBLOCK_AT, _SUPERBLOCK_SIZE)
        if block[_MAGIC : _MAGIC + 2] != b"\x53\xef":
            return None
        identity, name = struct.unpack_from("<16s16s", block, _LABEL)
        return FileSystem(
            device=self.device(partition),
            label=name.rstrip(b"\0").decode(errors="replace"),
            identity=UUID(bytes=identity),
            directory=self._filesystems / str(UUID(bytes=identity)),
        )

    def filesystems(self) -> Iterator[FileSystem]:
        """All file systems on the disk."""
        for partition in self.partitions():
            found = self.filesystem(partition)
            if found is not None and found.directory.is_dir():
                yield found

    def labelled(self, label: str) -> FileSystem | None:
        """The first file system with a label."""
        return next((entry for entry in self.filesystems() if entry.label == label), None)

    def device(self, partition: Partition) -> str:
        """Name of a partition."""
        return f"{self.name}{partition.number}"

    def write_image(self, fill: Callable[[str, Path], None]) -> Iterator[str]:
        """Write CoreOS's image, step by step; says how far it is. `fill` gets label and directory of a file system.

        The first MiB comes last, as coreos-installer has it, so that half an image never boots.
        """
        self._write(0, bytes(MIB))
        yield "0%"
        partitions: list[Partition] = []
        start = MIB
        for number, (name, kind, size) in enumerate(_LAYOUT, start=1):
            partitions.append(Partition(number=number, name=name, kind=kind, start=start, size=size * MIB))
            start += size * MIB
            if kind == gpt.LINUX:
                fill(name, self._format(partitions[-1]))
                yield f"{number * 25}%"
        head, tail = gpt.table(IMAGE_MIB * MIB, partitions, uuid4())
        self._write(IMAGE_MIB * MIB - len(tail), tail)
        self._write(0, head)
        yield "image"

    def wipe(self, partition: Partition) -> None:
        """Make a partition's file system unknown."""
        self._write(partition.start + SUPERBLOCK_AT, bytes(_SUPERBLOCK_SIZE))

    def _format(self, partition: Partition) -> Path:
        former, identity = self.filesystem(partition), uuid4()
        if former is not None and former.directory.is_dir():
            shutil.rmtree(former.directory)
        directory = self._filesystems / str(identity)
        directory.mkdir()
        self._write(partition.start + SUPERBLOCK_AT, superblock(partition.name, identity, partition.size))
        return directory

    def _read(self, offset: int, size: int) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    def _write(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as stream:
            stream.seek(offset)
            stream.write(data)


def superblock(label: str, identity: UUID, size: int) -> bytes:
    """As much of an ext4 superblock as tells its label and UUID."""
    block = bytearray(_SUPERBLOCK_SIZE)
    struct.pack_into("<II", block, 0, 128, size // 4096)
    struct.pack_into("<I", block, 0x18, 2)  # blocks of 4 KiB
    struct.pack_into("<HH", block, _MAGIC, 0xEF53, 1)
    struct.pack_into("<I", block, 0x4C, 1)
    struct.pack_into("<III", block, 0x5C, 0x4, 0x40, 0x1)  # a journal, extents, sparse superblocks
    struct.pack_into("<16s16s", block, _LABEL, identity.bytes, label.encode())
    return bytes(block)


class Disks:
    """All disks of a machine, in the order of its specification."""

    def __init__(self, known: Sequence[base.Disk], directory: Path) -> None:
        self.filesystems = directory / "filesystems"
        """A directory for each file system that was ever made on them."""
        self.all = tuple(Disk(entry, index, directory) for index, entry in enumerate(known))

    def make(self) -> None:
        """Put in those that are not there."""
        for disk in self.all:
            disk.make()

    def labelled(self, label: str) -> FileSystem | None:
        """The first file system with a label."""
        return next((found for disk in self.all if (found := disk.labelled(label)) is not None), None)
