"""The partition table is as the UEFI specification wants it, and GRUB's parts are told where they are."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from lab import gpt
from lab.errors import ImageError
from lab.node_image import ext4, grub
from lab.node_image.disk import assemble
from lab.node_image.packages import Tools
from lab.node_image.tree import Tree

DISK = UUID("00000000-0000-4000-8000-000000000001")
MIB = 1 << 20
PARTITIONS = [
    ("BIOS-BOOT", gpt.BIOS_BOOT, b"core"),
    ("root", gpt.LINUX_ROOT_X86_64, b"\xff" * (MIB + 1)),
]


def _header(disk: bytes, sector: int) -> tuple[int, ...]:
    """Of a header at that sector, after its checksums were verified: here, other, first, last, table."""
    header = disk[sector * gpt.SECTOR :][:92]
    assert header[:16] == b"EFI PART\0\0\1\0\x5c\0\0\0"
    assert struct.unpack_from("<I", header, 16)[0] == zlib.crc32(header[:16] + bytes(4) + header[20:])
    here, other, first, last = struct.unpack_from("<QQQQ", header, 24)
    table, count, size, checksum = struct.unpack_from("<QIII", header, 72)
    assert checksum == zlib.crc32(disk[table * gpt.SECTOR :][: count * size])
    return here, other, first, last, table


def test_both_tables_are_sound_and_know_each_other() -> None:
    disk = bytes(assemble(DISK, PARTITIONS, "1")[0])
    last = len(disk) // gpt.SECTOR - 1
    assert len(disk) % gpt.SECTOR == 0
    assert _header(disk, 1) == (1, last, 34, last - 33, 2)
    assert _header(disk, last) == (last, 1, 34, last - 33, last - 32)
    assert disk[510:512] == b"\x55\xaa"
    assert disk[450] == 0xEE


def test_partitions_are_where_the_table_says() -> None:
    disk, starts = assemble(DISK, PARTITIONS, "1")
    assert starts == {"BIOS-BOOT": MIB, "root": 2 * MIB}
    found = gpt.partitions(bytes(disk[: gpt.HEAD_SIZE]))
    assert [(each.name, each.kind, each.start) for each in found] == [
        (name, kind, starts[name]) for name, kind, _ in PARTITIONS
    ]
    assert len({each.id for each in found}) == 2
    for number, (each, (_, kind, data)) in enumerate(zip(found, PARTITIONS, strict=True)):
        raw, _, first, last, _, name = struct.unpack_from("<16s16sQQQ72s", disk, 1024 + 128 * number)
        assert (UUID(bytes_le=raw), name.decode("utf-16-le").rstrip("\0")) == (kind, each.name)
        assert disk[first * gpt.SECTOR :].startswith(data)
        assert (last + 1) * gpt.SECTOR - each.start >= len(data)
    assert gpt.partitions(bytes(disk[: gpt.HEAD_SIZE]).replace(b"B\0I\0O", b"X\0I\0O")) == (), "a damaged table"


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """GRUB's modules, as far as they are looked at."""
    directory = tmp_path / "usr/lib/grub/i386-pc"
    directory.mkdir(parents=True)
    (directory / "moddep.lst").write_text("linux16: boot relocator\nrelocator: mmap\nmmap:\nchain: boot\nboot:\n")
    for module in ("linux16", "boot", "relocator", "mmap", "chain"):
        (directory / f"{module}.mod").write_text(module)
    (directory / "boot.img").write_bytes(bytes(range(256)) * 2)
    return tmp_path


def test_the_boot_partition_has_what_coreos_installer_edits(debian: Path) -> None:
    tree = grub.boot_partition(debian, "12.0.1-0", {"vmlinuz": b"k", "initramfs.img": b"i", "authority.img": b"a"})
    entry = tree["loader/entries/ostree-1-lab-coreos.conf"].data.decode().splitlines()
    options = next(line for line in entry if line.startswith("options ")).split()
    assert options[1:4] == ["$ignition_firstboot", "root=PARTLABEL=root", "ignition.platform.id=metal"]
    assert "linux /ostree/lab-coreos-12.0.1-0/vmlinuz" in entry
    directory = "/ostree/lab-coreos-12.0.1-0"
    assert f"initrd {directory}/initramfs.img {directory}/authority.img" in entry
    configuration = tree["grub2/grub.cfg"].data.decode()
    start = configuration[configuration.index("if [ $grub_platform = pc ]; then") :]
    bios, efi = start[: start.index("\nfi\n")].split("\nelse\n")
    kernel, archives = f"{directory}/vmlinuz", f"{directory}/initramfs.img {directory}/authority.img"
    assert f"linux16 {kernel} $entry_options\n    initrd16 {archives}" in bios
    assert f"linux {kernel} $entry_options\n    initrd {archives}" in efi and "16" not in efi.replace(directory, "")
    # The expression of coreos-installer's src/install.rs.
    assert re.search(r"\n# CONSOLE-SETTINGS-START\n(([^\n]*\n)*)# CONSOLE-SETTINGS-END\n", configuration)
    platforms = json.loads(tree["coreos/platforms.json"].data)
    assert options[4:] == platforms["metal"]["kernel_arguments"]
    assert tree["ignition.firstboot"].data == b""


def test_the_modules_that_are_loaded_late_come_with_what_they_need(debian: Path) -> None:
    tree = grub.boot_partition(debian, "12.0.1-0", {"vmlinuz": b"k"})
    modules = {path for path, _ in tree.entries() if path.startswith("grub2/i386-pc/")}
    assert modules == {f"grub2/i386-pc/{name}.mod" for name in ("linux16", "boot", "relocator", "mmap")}


def test_the_bios_finds_the_core_image(debian: Path) -> None:
    sector = grub.bios_sector(debian, 1 << 20)
    assert len(sector) == 440
    assert struct.unpack_from("<Q", sector, 0x5C) == (2048,)
    assert struct.unpack_from("<Q", grub.at(bytes(1024), 1 << 20), 500) == (2049,)


def test_what_debugfs_complains_about_is_an_error(tmp_path: Path) -> None:
    class Complaining(Tools):
        def run(self, program: str, *arguments: object, **environment: str) -> str:
            if "mke2fs" in program:
                (tmp_path / "work/image").write_bytes(b"")
            return "debugfs: cd /\nAllocated inode: 12\nwrite: No space left\n" if "debugfs" in program else ""

    with pytest.raises(ImageError, match="file system root: debugfs says write: No space left"):
        ext4.build(Complaining(tmp_path), Tree(), tmp_path / "work", "root", str(DISK), free_mib=1)


@pytest.mark.parametrize("name", ["a b", 'a"b'])
def test_a_name_that_debugfs_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    class Unused(Tools):
        def run(self, program: str, *arguments: object, **environment: str) -> str:
            assert program == "usr/sbin/mke2fs"
            return ""

    tree = Tree()
    tree.file(name, b"")
    with pytest.raises(ImageError, match="debugfs does not take names with blanks or quotes"):
        ext4.build(Unused(tmp_path), tree, tmp_path / "work", "root", str(DISK), free_mib=1)
