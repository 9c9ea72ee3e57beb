"""The live ISO without its root file system, assembled as its builders made it, by instructions on the ISO.

`coreos/miniso.dat` lists which parts of the whole disc the minimal one has, in which order; it contains the bytes
between these parts, and the SHA-256 of the result. Format: coreos-installer, src/miniso.rs, version 1: bincode with
little-endian integers of variable length.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
from typing import IO

from metal_ipi.provider.live_iso import LiveIsoError
from metal_ipi.provider.live_iso.iso9660 import SECTOR, Disc, Extent

_DATA = "coreos/miniso.dat"
_MAGIC = b"MINISO\0\0"
_VERSION = 1
_PIECE = 1 << 20
_WIDE = {251: "<H", 252: "<I", 253: "<Q"}
"""The first byte of a longer integer → the format of the bytes that follow."""


def unpack(whole: IO[bytes], out: IO[bytes]) -> str:
    """Write the minimal disc of a whole one; returns its SHA-256 in hexadecimal digits. Raises LiveIsoError."""
    disc = Disc(whole)
    data = _Reader(disc.read(disc.need(_DATA)))
    if data.take(len(_MAGIC)) != _MAGIC or data.number() != _VERSION:
        raise LiveIsoError(f"{_DATA} of the ISO has a format that this program does not know")
    data.take(data.number())  # the program that wrote the file
    parts = [(data.number() * SECTOR, data.number() * SECTOR, data.number()) for _ in range(data.number())]
    wanted = data.take(hashlib.sha256().digest_size).hex()
    between = lzma.decompress(data.take(data.number()))
    digest, written, used = hashlib.sha256(), 0, 0

    def write(piece: bytes) -> None:
        nonlocal written
        digest.update(piece)
        out.write(piece)
        written += len(piece)

    for at, begin, length in parts:
        if at > written:
            gap = at - written
            write(between[used : used + gap])
            used += gap
        for offset in range(0, length, _PIECE):
            write(disc.read(Extent(offset=begin + offset, length=min(_PIECE, length - offset))))
    write(between[used:])
    if digest.hexdigest() != wanted:
        raise LiveIsoError("the minimal ISO cannot be made from this ISO: it is corrupt")
    return wanted


class _Reader:
    """Reads bincode, as far as it is used here."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def take(self, length: int) -> bytes:
        """The next `length` bytes. Raises LiveIsoError."""
        piece = self._data[self._position : self._position + length]
        if len(piece) != length:
            raise LiveIsoError(f"{_DATA} of the ISO is cut off")
        self._position += length
        return piece

    def number(self) -> int:
        """The next unsigned integer."""
        (first,) = self.take(1)
        form = _WIDE.get(first)
        return first if form is None else int(struct.unpack(form, self.take(struct.calcsize(form)))[0])
