"""The changes of a live ISO for one server: kernel arguments, and an initramfs of its own.

Two files of the ISO tell where to write. `coreos/kargs.json` has {"default", "size", "files": [{"path", "offset",
"pad"?, "end"?}]}: an area of `size` bytes in the configuration of each boot loader, filled up with `pad`.
`coreos/igninfo.json` has {"file", "offset"?, "length"?}: an empty initramfs. Source: coreos-installer,
src/live/embed.rs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.live_iso import PLAIN_ARGUMENT, LiveIsoError, initrd
from metal_ipi.provider.live_iso.iso9660 import Disc

_KARGS, _IGNINFO = "coreos/kargs.json", "coreos/igninfo.json"
_ON_DISC = "coreos.liveiso="
"""This argument says that the root file system is on the disc; a minimal disc does not have it."""


@dataclass(frozen=True, kw_only=True)
class Patch:
    """Bytes that replace others."""

    offset: int
    data: bytes


def patches(disc: Disc, arguments: Sequence[str], files: Mapping[str, bytes]) -> list[Patch]:
    """The changes that turn a minimal ISO into one server's disc.

    Args:
        arguments: kernel arguments, in order. The ISO's own arguments stay before them.
        files: files of the initramfs, by path without a leading slash.

    Raises LiveIsoError, also if something does not fit.
    """
    odd = [argument for argument in arguments if not re.fullmatch(PLAIN_ARGUMENT, argument)]
    if odd:
        raise LiveIsoError(
            f"the kernel argument `{odd[0]}` is not possible with a live ISO: its boot loaders would change it. Use "
            "letters, digits and _ . / : = , + @ % ~ - only, or another bootMethod"
        )
    info = _json(disc, _KARGS)
    own = [word for word in str(info["default"]).split() if not word.startswith(_ON_DISC) and word not in arguments]
    line, size = " ".join((*own, *arguments)), int(info["size"])
    if len(line) >= size:
        raise LiveIsoError(
            f"the kernel arguments have {len(line)} characters, and the live ISO has room for {size - 1}: shorten "
            "artifacts.baseUrl, boot.kernelArguments or the machine's name, or use another bootMethod"
        )
    found = [
        Patch(offset=disc.need(str(each["path"])).offset + int(each["offset"]), data=_area(line, size, each))
        for each in info["files"]
    ]
    if not found:
        raise LiveIsoError(f"{_KARGS} of the ISO names no place for kernel arguments")
    return [*found, _initramfs(disc, files)] if files else found


def _area(line: str, size: int, each: Mapping[str, Any]) -> bytes:
    text = line + str(each.get("end", "\n"))
    return text.ljust(size, str(each.get("pad", "#"))).encode()


def _initramfs(disc: Disc, files: Mapping[str, bytes]) -> Patch:
    info = _json(disc, _IGNINFO)
    place, begin = disc.need(str(info["file"])), int(info.get("offset") or 0)
    room = int(info.get("length") or place.length - begin)
    packed = initrd.pack(files)
    if len(packed) > room:
        raise LiveIsoError(
            f"the configuration of the live system has {len(packed)} bytes, and the live ISO has room for {room}"
        )
    return Patch(offset=place.offset + begin, data=packed.ljust(room, b"\0"))


def _json(disc: Disc, path: str) -> dict[str, Any]:
    # ISO 9660 cuts file name extensions to three characters.
    stem, _, end = path.rpartition(".")
    try:
        found = json.loads(disc.read(disc.find(path) or disc.need(f"{stem}.{end[:3]}")))
    except ValueError:
        raise LiveIsoError(f"{path} of the ISO is not JSON: it is corrupt") from None
    if not isinstance(found, dict):
        raise LiveIsoError(f"{path} of the ISO is not a JSON object: it is corrupt")
    return found
