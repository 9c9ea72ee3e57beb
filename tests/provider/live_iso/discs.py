"""Live ISOs that tests make, and coreos-installer where it was built."""

from __future__ import annotations

import io
import shutil
from functools import cache
from pathlib import Path

from binaries.cache import cache_directory
from lab.live_iso.coreos import BIOS_BOOT, Parts, live_iso
from metal_ipi.provider.live_iso import initrd, minimal
from metal_ipi.provider.live_iso.iso9660 import Disc

RELEASE = "12.0.1-0"
DEFAULT = "ignition.firstboot ignition.platform.id=metal"
_ROOM = 1024


@cache
def whole() -> bytes:
    """A whole disc; its files are told apart by their content."""
    return live_iso(
        Parts(
            release=RELEASE,
            kernel=b"K" * 5000,
            initramfs=b"I" * 70000,
            rootfs=b"R" * 300000,
            efi_boot=b"E" * 9000,
            bios_boot={path: b"B" * 9000 for path in BIOS_BOOT},
        )
    )


def small() -> io.BytesIO:
    """The same without its root file system."""
    out = io.BytesIO()
    minimal.unpack(io.BytesIO(whole()), out)
    return out


def line(disc: Disc) -> str:
    """What GRUB hands to the kernel."""
    place = disc.find("boot/grub/grub.cfg")
    assert place is not None
    text = disc.read(place).decode()
    return text.split("vmlinuz ", 1)[1].split("\n", 1)[0]


def initramfs(disc: Disc) -> dict[str, bytes]:
    """The files that the kernel finds beside those of the release."""
    place = disc.find("images/ignition.img")
    assert place is not None and place.length == 256 * 1024
    packed = disc.read(place).rstrip(b"\0")
    return initrd.unpack(packed + b"\0" * (-len(packed) % 4))


def room() -> int:
    """How many characters of kernel arguments a disc takes."""
    return len(f"coreos.liveiso=lab-coreos-{RELEASE} {DEFAULT}") + _ROOM - 1


def coreos_installer() -> str | None:
    """The program, on PATH or as the lab built it."""
    found = shutil.which("coreos-installer")
    built: list[Path] = sorted(cache_directory().glob("coreos-installer/*/bin/coreos-installer"))
    return found or (str(built[-1]) if built else None)
