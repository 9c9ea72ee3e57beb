"""The disk image: what coreos-installer writes to a machine's disk, with GRUB for BIOS and UEFI.

BIOS-BOOT, EFI-SYSTEM, boot and root, as CoreOS has them. The root file system is as small as its content; the first
boot lets it fill the disk (files/initramfs/init).

One file of it differs from lab to lab: the archive with the lab's CA, which GRUB gives to the kernel beside the
initramfs. The image is kept in two halves around it, each compressed, so that putting it in costs nothing.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path
from uuid import NAMESPACE_URL, UUID, uuid5

from lab import gpt
from lab.errors import ImageError
from lab.node_image import efi, ext4, grub
from lab.node_image.initramfs import authority
from lab.node_image.packages import Tools
from lab.node_image.tree import Tree

HEAD, TAIL = "disk-head.zst", "disk-tail.zst"
FORMAT = "raw.zst"
"""As stream metadata names it. Of what coreos-installer takes, machines decompress zstd the fastest."""
_LEVEL = "-12"
_MIB = 1 << 20

_AUTHORITY_BYTES = 16384
_BOOT_FREE_MIB, _ROOT_FREE_MIB = 24, 16


def build(tools: Tools, work: Path, release: str, *, kernel: bytes, initramfs: bytes, root: Tree) -> dict[str, bytes]:
    """The image's two halves, by the names of their files; `work` is for files on the way."""
    work.mkdir()
    place = _placeholder(release)
    core = grub.loader(tools, work)
    # Packed: GRUB reads a few megabytes a second on an emulated processor, and the kernel unpacks faster than that.
    files = {"vmlinuz": kernel, "initramfs.img": _compress(tools, initramfs, work), "authority.img": place}
    boot = grub.boot_partition(tools.directory, release, files)
    boot_id, root_id = (str(_id(release, f"{name} file system")) for name in ("boot", "root"))
    disk, starts = assemble(
        _id(release, "disk"),
        [
            ("BIOS-BOOT", gpt.BIOS_BOOT, core),
            ("EFI-SYSTEM", gpt.EFI_SYSTEM, efi.system_partition(tools, work)),
            ("boot", gpt.LINUX, ext4.build(tools, boot, work / "boot", "boot", boot_id, free_mib=_BOOT_FREE_MIB)),
            (
                "root",
                gpt.LINUX_ROOT_X86_64,
                ext4.build(tools, root, work / "root", "root", root_id, free_mib=_ROOT_FREE_MIB),
            ),
        ],
        release,
    )
    core_at = starts["BIOS-BOOT"]
    disk[core_at : core_at + len(core)] = grub.at(core, core_at)
    sector = grub.bios_sector(tools.directory, core_at)
    disk[: len(sector)] = sector
    middle = disk.find(place)
    if middle < 0:
        raise ImageError("disk image: the archive with the lab's CA is not in one piece on the boot file system")
    return {
        HEAD: _compress(tools, disk[:middle], work),
        TAIL: _compress(tools, disk[middle + len(place) :], work),
    }


def publish(head: bytes, tail: bytes, ca_pem: bytes, base_config: str) -> bytes:
    """The compressed image of a lab with this CA, and with what it adds to machines' configs."""
    archive = authority(ca_pem, base_config)
    if len(archive) > _AUTHORITY_BYTES:
        raise ImageError(
            f"disk image: the lab's CA and config make {len(archive)} bytes, there is room for {_AUTHORITY_BYTES}"
        )
    return head + _raw_frame(archive.ljust(_AUTHORITY_BYTES, b"\0")) + tail


def assemble(
    disk_id: UUID, contents: Sequence[tuple[str, UUID, bytes]], release: str
) -> tuple[bytearray, dict[str, int]]:
    """A disk of partitions (name, kind, content), each from a full MiB on, and where each begins (in bytes)."""
    made: list[gpt.Partition] = []
    end = _MIB
    for number, (name, kind, data) in enumerate(contents, start=1):
        size = len(data) + -len(data) % _MIB
        made.append(gpt.Partition(number=number, name=name, kind=kind, start=end, size=size, id=_id(release, name)))
        end += size
    disk = bytearray(end + _MIB)
    head, tail = gpt.table(len(disk), made, disk_id)
    disk[: len(head)], disk[-len(tail) :] = head, tail
    for partition, (_, _, data) in zip(made, contents, strict=True):
        disk[partition.start : partition.start + len(data)] = data
    return disk, {partition.name: partition.start for partition in made}


def _id(release: str, what: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"https://lab.invalid/{release}/{what}")


def _placeholder(release: str) -> bytes:
    """As long as the archive may be, and unlike anything else on the disk."""
    digests = (hashlib.sha512(f"{release} {number}".encode()).digest() for number in range(_AUTHORITY_BYTES // 64))
    return b"".join(digests)


def _compress(tools: Tools, data: bytes | bytearray, work: Path) -> bytes:
    plain, packed = work / "plain", work / "packed"
    plain.write_bytes(data)
    tools.run("usr/bin/zstd", "-q", "-f", _LEVEL, "-T0", "-o", packed, plain)
    return packed.read_bytes()


def _raw_frame(data: bytes) -> bytes:
    """A zstd frame of one uncompressed block (RFC 8878, 3.1.1): frames that follow each other are one stream."""
    single_segment_with_4_byte_size = 0xA0
    block = len(data) << 3 | 1  # the last one, raw
    header = struct.pack("<IBI", 0xFD2FB528, single_segment_with_4_byte_size, len(data))
    return header + block.to_bytes(3, "little") + data
