"""The user's cache of programs: locks so that one process at a time fills it, and directories that appear whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

Report = Callable[[str], None]
"""Takes one line of progress for the user."""

_TELL_EVERY_SECONDS = 15.0


def cache_directory() -> Path:
    """The directory of the user's cache; what is in it can be made again at any time."""
    return user_cache_path("metal-ipi", appauthor=False)


def is_program(path: Path) -> bool:
    """Whether a file is there that can be run."""
    return path.is_file() and os.access(path, os.X_OK)


@contextlib.contextmanager
def alone(lock: Path, program: str, report: Report) -> Generator[None]:
    """Hold the lock of a program. Others wait until it is free, and then find what its holder made."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(lock, fallback_to_soft=False)
    try:
        held.acquire(timeout=0)
    except Timeout:
        report(f"waiting for another run that is making {program} ...")
        held.acquire()
    try:
        yield
    finally:
        held.release()


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


@contextlib.contextmanager
def filling(finished: Path) -> Generator[Path]:
    """A directory to fill, which is `finished` once the block ends well: it is there whole, or not at all.

    If another process fills the same directory at the same time, the one that ends first stays.
    """
    finished.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="filling-", dir=finished.parent))
    try:
        yield fresh
        fresh.chmod(0o755)
        try:
            fresh.rename(finished)
        except OSError:
            if not finished.is_dir():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
