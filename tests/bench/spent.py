"""What the lab has cost: the processor time of all that is, or was, in its PID namespace. The engine is in another."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lab.layout import Layout
from lab.leftovers import watched_namespaces
from tests.bench.measure import BenchError

_TIMES = slice(11, 15)
"""User, system, and both of those waited for: fields 14 to 17 of proc(5), counted from behind the name."""


def spent_by_lab(state: Path) -> float:
    """Seconds since the lab with its state there was started: the API, the network and every machine."""
    with watched_namespaces(Layout.of(state)) as spaces:
        if not spaces:
            raise BenchError(f"no lab is running in {state}")
        return spent(spaces["pid"])


def spent(namespace: str, proc: Path = Path("/proc")) -> float:
    """Seconds of all processes in a PID namespace, and of those that they waited for."""
    ticks = 0
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # one that ends just now is another one's to tell, or another user's
            if str((process / "ns" / "pid").readlink()) == namespace:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")
