"""Which shared libraries an ELF file asks for: enough of the format to follow DT_NEEDED and PT_INTERP."""

from __future__ import annotations

import struct

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB = 1, 5


def needed(data: bytes) -> tuple[str, ...]:
    """Names of the libraries, and the path of the loader, that a 64-bit little-endian ELF file needs.

    Empty for anything else (scripts, data, static binaries), so that it may be asked of any file.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        return ()
    table, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    # Type, flags, offset, virtual address, physical address, size in the file.
    headers = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
    segments = [(address, offset, length) for kind, _, offset, address, _, length in headers if kind == _PT_LOAD]
    names: list[str] = []
    for kind, _, offset, _, _, length in headers:
        if kind == _PT_INTERP:
            names.append(data[offset : offset + length].rstrip(b"\0").decode())
        elif kind == _PT_DYNAMIC:
            tags = list(struct.iter_unpack("<QQ", data[offset : offset + length // 16 * 16]))
            strings = next((_offset(segments, value) for tag, value in tags if tag == _DT_STRTAB), 0)
            names += [_string(data, strings + value) for tag, value in tags if tag == _DT_NEEDED]
    return tuple(names)


def _offset(segments: list[tuple[int, int, int]], address: int) -> int:
    return next(offset + address - start for start, offset, length in segments if start <= address < start + length)


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()
