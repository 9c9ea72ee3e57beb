"""What firmware and its boot loader find on a live ISO: files, and what the loader's configuration starts."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from lab.live_iso.coreos import EFI_BOOT, GRUB, ISOLINUX, ISOLINUX_CONFIG
from lab.live_iso.writer import SECTOR, DiscError, short

_PRIMARY_SECTOR, _ROOT_RECORD = 16, 156


@dataclass(frozen=True, kw_only=True)
class Booted:
    """The kernel, initramfs and arguments that the boot loader starts."""

    kernel: bytes
    arguments: tuple[str, ...]
    initrds: tuple[bytes, ...]


class Reader:
    """A disc in a file."""

    def __init__(self, path: Path) -> None:
        """Raises DiscError where the file is not a disc."""
        self._path = path
        sector = self._at(_PRIMARY_SECTOR * SECTOR, SECTOR)
        if sector[1:6] != b"CD001":
            raise DiscError(f"{path.name} is not an ISO 9660 image")
        self._root = (
            struct.unpack_from("<I", sector, _ROOT_RECORD + 2)[0],
            struct.unpack_from("<I", sector, _ROOT_RECORD + 10)[0],
        )

    def read(self, path: str) -> bytes:
        """A file; raises DiscError where there is none."""
        sector, length = self._root
        for name in short(path).split("/"):
            entries = self._entries(sector, length)
            if name not in entries:
                raise DiscError(f"{path} is not on the disc")
            sector, length = entries[name]
        return self._at(sector * SECTOR, length)

    def efi_boot(self) -> bytes:
        """The image that UEFI firmware starts."""
        return self.read(EFI_BOOT)

    def booted(self, *, uefi: bool = True) -> Booted:
        """What is started, as GRUB reads its configuration; or ISOLINUX, on a BIOS."""
        return self._by_grub() if uefi else self._by_isolinux()

    def _by_grub(self) -> Booted:
        text = self.read(GRUB).decode()
        kernel = re.search(r"^linux (\S+)(.*)$", text, re.MULTILINE)
        images = re.search(r"^initrd (.*)$", text, re.MULTILINE)
        if kernel is None or images is None:
            raise DiscError("GRUB's configuration starts no kernel")
        return self._started(kernel[1], kernel[2].split(), images[1].split())

    def _by_isolinux(self) -> Booted:
        self.read(ISOLINUX)
        text = self.read(ISOLINUX_CONFIG).decode()
        kernel = re.search(r"^kernel (\S+)$", text, re.MULTILINE)
        options = re.search(r"^append initrd=(\S+)(.*)$", text, re.MULTILINE)
        if kernel is None or options is None:
            raise DiscError("ISOLINUX's configuration starts no kernel")
        return self._started(kernel[1], options[2].split(), options[1].split(","))

    def _started(self, kernel: str, arguments: list[str], initrds: list[str]) -> Booted:
        return Booted(
            kernel=self.read(kernel.lstrip("/")),
            arguments=(f"BOOT_IMAGE={kernel}", *arguments),
            initrds=tuple(self.read(name.lstrip("/")) for name in initrds),
        )

    def _entries(self, sector: int, length: int) -> dict[str, tuple[int, int]]:
        data, found, position = self._at(sector * SECTOR, length), dict[str, tuple[int, int]](), 0
        while position < len(data):
            size = data[position]
            if size == 0:
                position = (position // SECTOR + 1) * SECTOR
                continue
            record = data[position : position + size]
            name = record[33 : 33 + record[32]].decode("latin-1").partition(";")[0]
            found[name] = struct.unpack_from("<I", record, 2)[0], struct.unpack_from("<I", record, 10)[0]
            position += size
        return found

    def _at(self, offset: int, length: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
