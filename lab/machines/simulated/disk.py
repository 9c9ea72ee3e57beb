"""The disks of a simulated machine: files with real partition tables and labels, and a directory per file system.

What a file system holds is in a directory that is named by its UUID. Where nothing on a disk says that UUID any more,
because it was wiped or written anew, nobody finds the directory again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from lab.machines import base
from lab.machines.simulated import gpt
from lab.machines.simulated.gpt import Partition

MIB = 1 << 20
_LINUX = UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
_LAYOUT = (
    ("BIOS-BOOT", UUID("21686148-6449-6e6f-744e-656564454649"), 1),
    ("EFI-SYSTEM", UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b"), 127),
    ("boot", _LINUX, 384),
    ("root", _LINUX, 512),
)
"""Partitions of CoreOS's image: name, type, MiB."""
IMAGE_MIB = 2 + sum(size for _, _, size in _LAYOUT)
"""The image's size; what a disk has besides is left as it is."""


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """One that is on a disk now."""

    device: str
    """Name of its partition, such as vda3."""
    label: str
    identity: UUID
    directory: Path
    """What it holds."""


class Disk:
    """One disk: a sparse file."""

    def __init__(self, known: base.Disk, index: int, directory: Path) -> None:
        self.name = f"vd{chr(ord('a') + index)}"
        """As the kernel names it."""
        self.serial = known.serial
        self.rotational = known.rotational
        self.size = known.size_mib * MIB
        self.path = directory / known.serial
        self._filesystems = directory / "filesystems"

    def make(self) -> None:
        """As it comes from the factory, unless it is there."""
        self._filesystems.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.path.open("ab") as stream:
            stream.truncate(self.size)

    def partitions(self) -> tuple[Partition, ...]:
        """What its table says; none without a good table."""
        return gpt.partitions(self._read(0, gpt.HEAD_SIZE))

    def has_boot_sector(self) -> bool:
        """Whether firmware would start what is on it."""
        return self._read(510, 2) == b"\x55\xaa"

    def filesystem(self, partition: Partition) -> FileSystem | None:
        """What is on a partition, if that is one we can look into."""
        offset, size = gpt.SUPERBLOCK
        found = gpt.label(self._read(partition.start + offset, size))
        if found is None:
            return None
        name, identity = found
        directory = self._filesystems / str(identity)
        return FileSystem(device=self.device(partition), label=name, identity=identity, directory=directory)

    def filesystems(self) -> Iterator[FileSystem]:
        """All that are on it."""
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
            if kind == _LINUX:
                fill(name, self._format(partitions[-1]))
                yield f"{number * 25}%"
        head, tail = gpt.table(IMAGE_MIB * MIB, partitions)
        self._write(IMAGE_MIB * MIB - len(tail), tail)
        self._write(0, head)
        yield "image"

    def wipe(self, partition: Partition) -> None:
        """Make a partition's file system unknown."""
        offset, size = gpt.SUPERBLOCK
        self._write(partition.start + offset, bytes(size))

    def _format(self, partition: Partition) -> Path:
        former, identity = self.filesystem(partition), uuid4()
        if former is not None and former.directory.is_dir():
            shutil.rmtree(former.directory)
        directory = self._filesystems / str(identity)
        directory.mkdir()
        self._write(partition.start + gpt.SUPERBLOCK[0], gpt.superblock(partition.name, identity, partition.size))
        return directory

    def _read(self, offset: int, size: int) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    def _write(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as stream:
            stream.seek(offset)
            stream.write(data)


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
