"""What the kernel unpacks at its start: a simulated initramfs, and newc archives behind it.

A simulated initramfs is a JSON object {"kind": "simulated-initramfs", "rootfs_sha256": ...}. Archives follow it as the
kernel wants them (Linux, init/initramfs.c): at a multiple of four bytes, with nothing but NUL characters between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

_MAGIC = b"070701"
_HEADER = 110
_END = "TRAILER!!!"


class ArchiveError(Exception):
    """The kernel cannot unpack it; the text is what it prints."""


def unpacked(images: Sequence[bytes]) -> tuple[str | None, dict[str, bytes]]:
    """The hash of the root file system that the initramfs insists on, and the files of all archives.

    The loader puts images behind each other, each at a multiple of four bytes.
    """
    wanted: str | None = None
    files: dict[str, bytes] = {}
    for image in images:
        found, rest = _initramfs(image)
        wanted = found or wanted
        files.update(_members(image, rest))
    return wanted, files


def _initramfs(image: bytes) -> tuple[str | None, int]:
    """What a simulated initramfs says, and where it ends; (None, 0) of any other image."""
    text = image.decode("latin-1")
    if not text.startswith("{"):
        return None, 0
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None, 0
    fields = cast("dict[str, Any]", document)
    return (str(fields.get("rootfs_sha256")), end) if fields.get("kind") == "simulated-initramfs" else (None, 0)


def _members(image: bytes, at: int) -> Iterator[tuple[str, bytes]]:
    while at < len(image):
        if image[at] == 0:
            at += 1
            continue
        if at % 4 or image[at : at + len(_MAGIC)] != _MAGIC:
            raise ArchiveError("Initramfs unpacking failed: invalid magic at start of compressed archive")
        try:
            fields = [int(image[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        except ValueError:
            raise ArchiveError("Initramfs unpacking failed: broken padding") from None
        size, name_size = fields[6], fields[11]
        name = image[at + _HEADER : at + _HEADER + name_size - 1].decode()
        start = at + _HEADER + name_size
        start += -start % 4
        at = start + size
        at += -at % 4
        if start + size > len(image):
            raise ArchiveError("Initramfs unpacking failed: junk within compressed archive")
        if name != _END:
            yield name, image[start : start + size]
