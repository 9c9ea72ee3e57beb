"""What UEFI firmware boots from the live ISO, Secure Boot or not: shim and GRUB as Microsoft and Debian signed them."""

from __future__ import annotations

from pathlib import Path

from lab.node_image.packages import Tools

EFI_BOOT = "efiboot.img"
"""The image's file in the cache."""
_MIB = 8
_SHIM = "usr/lib/shim/shimx64.efi.signed"
_GRUB = "usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed"
"""The one for discs: it looks for /.disk/info and boot/grub/grub.cfg there."""
_CLOCK = {"SOURCE_DATE_EPOCH": "315532800", "MTOOLS_SKIP_CHECK": "1"}
"""FAT's first second: the same files make the same image."""


def boot_image(tools: Tools, work: Path) -> bytes:
    """A FAT file system with /EFI/BOOT, which the disc's boot catalogue names; `work` is for files on the way."""
    image = work / EFI_BOOT
    image.write_bytes(b"\0" * (_MIB << 20))
    tools.run("usr/bin/mformat", "-i", image, "-N", "4c414222", "-v", "EFI-SYSTEM", "::", **_CLOCK)
    tools.run("usr/bin/mmd", "-i", image, "::/EFI", "::/EFI/BOOT", **_CLOCK)
    for source, name in ((_SHIM, "BOOTX64.EFI"), (_GRUB, "grubx64.efi")):
        tools.run("usr/bin/mcopy", "-i", image, tools.directory / source, f"::/EFI/BOOT/{name}", **_CLOCK)
    return image.read_bytes()
