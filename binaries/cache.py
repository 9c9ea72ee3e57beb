"""The user's cache of programs, and locks so that one process at a time fills it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

Report = Callable[[str], None]
"""Takes one line of progress for the user."""

_TELL_EVERY_SECONDS = 15.0


def cache_directory() -> Path:
    """The directory of the user's cache; what is in it can be made again at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metal-ipi"


def is_program(path: Path) -> bool:
    """Whether a file is there that can be run."""
    return path.is_file() and os.access(path, os.X_OK)


@contextlib.contextmanager
def alone(lock: Path, program: str, report: Report) -> Generator[None]:
    """Hold the lock of a program. Others wait until it is free, and then find what its holder made."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another run that is making {program} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def telling_time(report: Report) -> Generator[None]:
    """Report every 15 seconds that the work inside goes on."""
    done = threading.Event()
    started = time.monotonic()

    def keep_telling() -> None:
        while not done.wait(_TELL_EVERY_SECONDS):
            report(f"  ... {time.monotonic() - started:.0f} s")

    ticker = threading.Thread(target=keep_telling, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
