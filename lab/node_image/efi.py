"""What UEFI firmware starts, with Secure Boot or without: shim and GRUB as Microsoft and Debian signed them."""

from __future__ import annotations

from pathlib import Path

from lab.node_image.packages import Tools

EFI_BOOT = "efiboot.img"
"""The image of the live ISO, in the cache."""
_SHIM = "usr/lib/shim/shimx64.efi.signed"
_GRUB = "usr/lib/grub/x86_64-efi-signed/{}.efi.signed"
_MIB = 8
_CLOCK = {"SOURCE_DATE_EPOCH": "315532800", "MTOOLS_SKIP_CHECK": "1"}
"""FAT's first second: the same files make the same image."""
_CONFIGURATION = """\
search --label boot --set root --no-floppy
set prefix=($root)/grub2
configfile $prefix/grub.cfg
"""
"""What the signed GRUB for disks reads first: the rest is on the boot partition, whatever other disks there are."""


def disc_image(tools: Tools, work: Path, configuration: str | None = None) -> bytes:
    """What an ISO's boot catalogue names. Its GRUB looks for /.disk/info and boot/grub/grub.cfg on the disc.

    It reads `configuration` where the disc has neither.
    """
    files = {
        "EFI/BOOT/BOOTX64.EFI": tools.directory / _SHIM,
        "EFI/BOOT/grubx64.efi": tools.directory / _GRUB.format("gcdx64"),
    }
    if configuration is not None:
        (work / "disc-grub.cfg").write_text(configuration)
        files["EFI/BOOT/grub.cfg"] = work / "disc-grub.cfg"
    return _file_system(tools, work / EFI_BOOT, "4c414222", files)


def system_partition(tools: Tools, work: Path) -> bytes:
    """The EFI system partition of an installed system."""
    configuration = work / "efi-grub.cfg"
    configuration.write_text(_CONFIGURATION)
    files = {
        "EFI/BOOT/BOOTX64.EFI": tools.directory / _SHIM,
        "EFI/BOOT/grubx64.efi": tools.directory / _GRUB.format("grubx64"),
        "EFI/debian/grub.cfg": configuration,
    }
    return _file_system(tools, work / "efi-system", "4c414221", files)


def _file_system(tools: Tools, image: Path, serial: str, files: dict[str, Path]) -> bytes:
    """A FAT file system with files, by path."""
    image.write_bytes(b"\0" * (_MIB << 20))
    tools.run("usr/bin/mformat", "-i", image, "-N", serial, "-v", "EFI-SYSTEM", "::", **_CLOCK)
    folders = sorted({str(parent) for path in files for parent in Path(path).parents} - {"."})
    tools.run("usr/bin/mmd", "-i", image, *(f"::/{folder}" for folder in folders), **_CLOCK)
    for path, source in files.items():
        tools.run("usr/bin/mcopy", "-i", image, source, f"::/{path}", **_CLOCK)
    return image.read_bytes()
