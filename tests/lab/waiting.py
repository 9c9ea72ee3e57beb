"""Waiting for what other processes do, and finding them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def until(condition: Callable[[], object], seconds: float = 10.0) -> float:
    """Wait until something holds; returns how long it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"it did not come to hold within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - started


def processes(*texts: object) -> list[int]:
    """Every other process of the system whose command line has all of these texts."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since
            command = (entry / "cmdline").read_bytes()
            if all(str(text).encode() in command for text in texts):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]
