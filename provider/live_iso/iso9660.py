"""Finds a file on an ISO 9660 disc: its offset and length. Files are contiguous; nothing else is needed.

Source: ECMA-119, 8.4 (primary volume descriptor) and 9.1 (directory record). Names are those of the primary tree, in
capitals: CoreOS's JSON files use another spelling, and `find` accepts both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from metal_ipi.provider.live_iso import LiveIsoError

SECTOR = 2048
_FIRST_DESCRIPTOR = 16
_PRIMARY, _TERMINATOR = 1, 255
_DIRECTORY = 2
_ROOT_RECORD = 156
_LARGEST_DIRECTORY = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Extent:
    """A part of a disc."""

    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class _Entry:
    name: str
    extent: Extent
    is_directory: bool


class Disc:
    """A disc image in a file."""

    def __init__(self, file: IO[bytes]) -> None:
        """Raises LiveIsoError if the file is not a disc image."""
        self._file = file
        self._root = self._find_root()

    def find(self, path: str) -> Extent | None:
        """The place of a file; None if it does not exist."""
        *folders, name = path.upper().strip("/").split("/")
        here = self._root
        for folder in folders:
            found = self._entry(here, folder)
            if found is None or not found.is_directory:
                return None
            here = found.extent
        found = self._entry(here, name)
        return None if found is None or found.is_directory else found.extent

    def need(self, path: str) -> Extent:
        """The place of a file. Raises LiveIsoError if it does not exist."""
        found = self.find(path)
        if found is None:
            raise LiveIsoError(f"the ISO has no {path}: it is not CoreOS's, or is older than 2023")
        return found

    def read(self, extent: Extent) -> bytes:
        """The bytes of a place. Raises LiveIsoError if the disc is too short."""
        self._file.seek(extent.offset)
        data = self._file.read(extent.length)
        if len(data) != extent.length:
            raise LiveIsoError(f"the ISO ends before byte {extent.offset + extent.length}: it is incomplete")
        return data

    def _find_root(self) -> Extent:
        number = _FIRST_DESCRIPTOR
        while True:
            sector = self.read(Extent(offset=number * SECTOR, length=SECTOR))
            if sector[1:6] != b"CD001":
                raise LiveIsoError("the file is not an ISO 9660 image")
            if sector[0] == _PRIMARY:
                return _record(sector[_ROOT_RECORD:]).extent
            if sector[0] == _TERMINATOR:
                raise LiveIsoError("the ISO has no primary volume descriptor")
            number += 1

    def _entry(self, folder: Extent, name: str) -> _Entry | None:
        return next((entry for entry in self._entries(folder) if entry.name == name), None)

    def _entries(self, folder: Extent) -> Iterator[_Entry]:
        if folder.length > _LARGEST_DIRECTORY:
            raise LiveIsoError(f"a directory of the ISO has {folder.length} bytes: it is corrupt")
        data, position = self.read(folder), 0
        while position < len(data):
            length = data[position]
            if length == 0:  # records do not cross sectors
                position = (position // SECTOR + 1) * SECTOR
                continue
            yield _record(data[position : position + length])
            position += length


def _record(data: bytes) -> _Entry:
    try:
        sector, length = struct.unpack_from("<I", data, 2)[0], struct.unpack_from("<I", data, 10)[0]
        flags, size = data[25], data[32]
        name = data[33 : 33 + size].decode("latin-1")
    except (struct.error, IndexError):
        raise LiveIsoError("a directory record of the ISO is cut off: it is corrupt") from None
    return _Entry(
        name=name.partition(";")[0].removesuffix(".").upper(),
        extent=Extent(offset=sector * SECTOR, length=length),
        is_directory=bool(flags & _DIRECTORY),
    )
