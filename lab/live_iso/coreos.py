"""What is on CoreOS's live ISO, and where it leaves room: for kernel arguments, for Ignition, for its smaller self."""

from __future__ import annotations

import hashlib
import json
import lzma
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.live_iso.writer import SECTOR, Disc, disc

KERNEL, INITRAMFS, ROOTFS = "images/pxeboot/vmlinuz", "images/pxeboot/initrd.img", "images/pxeboot/rootfs.img"
IGNITION, EFI_BOOT = "images/ignition.img", "images/efiboot.img"
ISOLINUX, ISOLINUX_CONFIG = "isolinux/isolinux.bin", "isolinux/isolinux.cfg"
BIOS_BOOT = (ISOLINUX, "isolinux/ldlinux.c32")
"""ISOLINUX, which a BIOS boots, and what that reads first."""
GRUB = "boot/grub/grub.cfg"
"""On CoreOS it is EFI/<vendor>/grub.cfg; Debian's signed GRUB for discs looks here."""
_MINISO = "coreos/miniso.dat"
_IGNITION_ROOM, _MINISO_ROOM, _KARGS_ROOM = 256 * 1024, 16 * 1024, 1024


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a live ISO is made of."""

    release: str
    kernel: bytes
    initramfs: bytes
    rootfs: bytes
    efi_boot: bytes
    """A FAT image with EFI/BOOT/BOOTX64.EFI."""
    bios_boot: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The files BIOS_BOOT, by path; without them the disc boots from UEFI only, as CoreOS's for aarch64."""


def live_iso(parts: Parts) -> bytes:
    """The whole disc."""
    label = f"lab-coreos-{parts.release}"[:32]
    default = " ".join((f"coreos.liveiso={label}", "ignition.firstboot", "ignition.platform.id=metal"))
    size = len(default) + _KARGS_ROOM
    area = f"{default}\n".ljust(size, "#") + " COREOS_KARG_EMBED_AREA\n"
    begins = {GRUB: f"set timeout=0\nlinux /{KERNEL} "}
    configurations = {GRUB: f"{begins[GRUB]}{area}initrd /{INITRAMFS} /{IGNITION}\nboot\n"}
    if parts.bios_boot:
        head = f"default linux\nlabel linux\nkernel /{KERNEL}\nappend initrd=/{INITRAMFS},/{IGNITION} "
        begins[ISOLINUX_CONFIG], configurations[ISOLINUX_CONFIG] = head, f"{head}{area}"
    places = [{"offset": len(head), "path": path} for path, head in begins.items()]
    # ISOLINUX knows where it is, and comes first: so it is at the same place on the small disc.
    files: dict[str, bytes] = {
        **parts.bios_boot,
        ".disk/info": f"{label}\n".encode(),
        **{path: text.encode() for path, text in configurations.items()},
        "coreos/features.json": _json({"live-initrd-network": True}),
        "coreos/igninfo.json": _json({"file": IGNITION}),
        "coreos/kargs.json": _json({"default": default, "files": places, "size": size}),
        EFI_BOOT: parts.efi_boot,
        IGNITION: bytes(_IGNITION_ROOM),
        INITRAMFS: parts.initramfs,
        KERNEL: parts.kernel,
    }
    boots: dict[str, Any] = {"label": label, "efi": EFI_BOOT, "bios": ISOLINUX if parts.bios_boot else None}
    small = disc(files, **boots)
    whole = disc({**files, _MINISO: bytes(_MINISO_ROOM), ROOTFS: parts.rootfs}, **boots)
    packed = _packed(small, whole, {path: len(content) for path, content in files.items()})
    offset = whole.sectors[_MINISO] * SECTOR
    return whole.data[:offset] + packed + whole.data[offset + len(packed) :]


def _packed(small: Disc, whole: Disc, lengths: Mapping[str, int]) -> bytes:
    """How to make the small disc of the whole one: coreos-installer's miniso data, version 1."""
    table = sorted((small.sectors[path], whole.sectors[path], length) for path, length in lengths.items() if length)
    between, at = b"", 0
    for sector, _, length in table:
        between += small.data[at : sector * SECTOR]
        at = sector * SECTOR + length
    between += small.data[at:]
    data = b"MINISO\0\0" + _number(1) + _number(3) + b"lab"
    data += _number(len(table)) + b"".join(_number(value) for entry in table for value in entry)
    packed = lzma.compress(between, preset=9)
    data += hashlib.sha256(small.data).digest() + _number(len(packed)) + packed
    assert len(data) <= _MINISO_ROOM, f"{_MINISO} would have {len(data)} bytes"
    return data


def _number(value: int) -> bytes:
    """bincode: an unsigned integer of variable length, little-endian."""
    if value < 251:
        return bytes((value,))
    for first, form in ((251, "<H"), (252, "<I"), (253, "<Q")):
        if value < 1 << 8 * struct.calcsize(form):
            return bytes((first,)) + struct.pack(form, value)
    raise OverflowError(value)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode() + b"\n"
