"""An initramfs with a few files: cpio in format `newc`, compressed, as the kernel unpacks it.

Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst; the kernel's xz supports only CRC32
(Documentation/staging/xz.rst). `coreos-installer pxe ignition wrap` makes the same with one file, config.ign.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Mapping

from metal_ipi.provider.live_iso import LiveIsoError

IGNITION = "config.ign"
"""The file in which the live system finds its Ignition config."""
_MAGIC = b"070701"
_HEADER = 110
_TRAILER = "TRAILER!!!"
_FILE, _FOLDER = 0o100600, 0o40755


def archive(files: Mapping[str, bytes]) -> bytes:
    """An uncompressed archive of files, by path without a leading slash."""
    members: dict[str, tuple[int, bytes]] = {}
    for path, content in sorted(files.items()):
        folders = path.split("/")[:-1]
        for depth in range(1, len(folders) + 1):  # the kernel does not create folders itself
            members.setdefault("/".join(folders[:depth]), (_FOLDER, b""))
        members[path] = (_FILE, content)
    packed = b"".join(
        _member(number, path, mode, content) for number, (path, (mode, content)) in enumerate(members.items(), 1)
    )
    return packed + _member(0, _TRAILER, 0, b"")


def pack(files: Mapping[str, bytes]) -> bytes:
    """A compressed archive: an initramfs."""
    return lzma.compress(archive(files), check=lzma.CHECK_CRC32, preset=9)


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of an initramfs with one archive, compressed or not. Raises LiveIsoError."""
    try:
        if data.startswith(b"\xfd7zXZ"):
            data = lzma.decompress(data)
        elif data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (lzma.LZMAError, OSError, EOFError) as error:
        raise LiveIsoError(f"the initramfs cannot be unpacked: {error}") from None
    files: dict[str, bytes] = {}
    position = 0
    while data[position : position + len(_MAGIC)] == _MAGIC:
        try:
            fields = [int(data[position + start : position + start + 8], 16) for start in range(6, _HEADER, 8)]
            mode, size, length = fields[1], fields[6], fields[11]
            begin = position + _HEADER
            path = data[begin : begin + length - 1].decode()
        except ValueError:
            break
        if path == _TRAILER:
            return files
        begin = _aligned(begin + length)
        if mode & 0o170000 == _FILE & 0o170000:
            files[path] = data[begin : begin + size]
        position = _aligned(begin + size)
    raise LiveIsoError("the initramfs is not a complete cpio archive of format newc")


def _member(number: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = _MAGIC + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data.ljust(_aligned(len(data)), b"\0")


def _aligned(length: int) -> int:
    return (length + 3) & ~3
