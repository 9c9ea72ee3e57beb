"""The logs of machines that failed steps gathered, in a Secret, from which `up` on another computer reads them."""

from __future__ import annotations

import base64
import lzma
from pathlib import Path

_LONGEST = 1 << 20
"""Bytes of one log; only the end of a longer one is kept."""
_ROOM = 700_000
"""Bytes of all logs together: the API accepts no Secret of more than a MiB."""


Stamps = frozenset[tuple[str, int, int]]
"""Name, time and size of logs."""


def stamps(directory: Path) -> Stamps:
    """Names, times and sizes of the logs, to notice new logs without reading them."""
    found = ((str(path), path.stat()) for path in directory.glob("*/*.log"))
    return frozenset((name, status.st_mtime_ns, status.st_size) for name, status in found)


def gathered(directory: Path) -> dict[str, str]:
    """The newest logs in a directory of gates' directories, as data of a Secret: `<gate>.<file>`, xz, base64."""
    found: dict[str, str] = {}
    newest = sorted(directory.glob("*/*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest:
        packed = base64.b64encode(lzma.compress(path.read_bytes()[-_LONGEST:])).decode()
        if len(packed) + sum(map(len, found.values())) <= _ROOM:
            found[f"{path.parent.name}.{path.name}"] = packed
    return found
