"""A reader of newc archives, by the format's description and not by the writer under test."""

from __future__ import annotations

Entry = tuple[int, int, int, tuple[int, int], bytes]
"""Mode, uid, gid, device, content."""


def read(data: bytes) -> dict[str, Entry]:
    """Entries of all archives in `data`, one after the other, as the kernel unpacks them: a later one wins."""
    entries: dict[str, Entry] = {}
    position = 0
    while position < len(data):
        if data[position : position + 1] == b"\0":
            position += 1
            continue
        assert data[position : position + 6] == b"070701", f"no newc header at {position}"
        assert position % 4 == 0
        words = [int(data[position + 6 + 8 * index : position + 14 + 8 * index], 16) for index in range(13)]
        _, mode, uid, gid, _, _, size, _, _, major, minor, name_size, _ = words
        name = data[position + 110 : position + 110 + name_size - 1].decode()
        start = _align(position + 110 + name_size)
        position = _align(start + size)
        if name != "TRAILER!!!":
            entries[name] = (mode, uid, gid, (major, minor), data[start : start + size])
    return entries


def _align(position: int) -> int:
    return position + -position % 4
