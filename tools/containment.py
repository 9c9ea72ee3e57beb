"""Nothing an engine started may outlive it: a plug-in that goes on alone could create machines no state knows of.

The engine's process runs as the first process of a PID namespace of its own: when it ends, the kernel kills the rest.
It holds a leash to the outer process, its standard input: when the outer process is gone, however it died, the leash
ends and so does the engine's process. Whoever is killed first, nothing is left.
    outer killed    -> the leash ends -> the engine's process exits -> the kernel kills engine and plug-ins
    engine killed   -> the engine's process sees it, reports and exits -> the kernel kills the plug-ins
    process between -> the outer process lets go of the leash and waits for the stack's lock
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO, cast

from filelock import FileLock, Timeout

from tools.errors import StackError
from tools.files import make_private

ALIVE = b"+"
"""The first byte on the leash: the outer process holds it."""
STOP = b"s"
"""Asks the inner process to cancel the operation, as Ctrl-C does."""
LOOKING = frozenset({"preflight", "sweep"})
"""The operations of the inner process that touch no state: they work on one apart."""

_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
_WAYS: tuple[tuple[str, ...], ...] = (_UNSHARE, (*_UNSHARE, "--user", "--map-current-user"))


def contained(command: Sequence[str]) -> list[str]:
    """The command line that runs a command in a PID namespace of its own; as it is where that is forbidden."""
    if shutil.which(_UNSHARE[0]):
        for way in _WAYS:
            probe = subprocess.run([*way, "--", "true"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
            if probe.returncode == 0:
                return [*way, "--", *command]
    print("no PID namespace is permitted here: after a kill -9 the plug-ins may go on for a while", file=sys.stderr)
    return list(command)


def hold_leash(on_stop: Callable[[], None], on_end: Callable[[], None]) -> None:
    """Live and die with the outer process, which holds the other end of standard input; `on_end` is called last."""
    if os.read(0, 1) != ALIVE:
        raise StackError(
            "the engine's process was started without a leash",
            why="standard input is not the pipe that the outer process holds",
            remedy="use `python -m tools up` (or down, ...); `engine` is its inner half",
        )
    # The engine and its plug-ins must not inherit the leash.
    leash = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def watch() -> None:
        while os.read(leash, 1) == STOP:
            on_stop()
        on_end()
        os._exit(137)

    threading.Thread(target=watch, daemon=True, name="leash").start()


def run_leashed(
    command: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str],
    started: Callable[[IO[bytes]], None],
    line: Callable[[str], None] | None = None,
) -> int:
    """Run a command that holds our leash; returns its exit status.

    `started` is given the leash; `line` each line that it prints, where that does not go where ours goes.
    """
    # A session of its own: Ctrl-C reaches only us, and we decide what becomes of it.
    out, told = (None, None) if line is None else (subprocess.PIPE, subprocess.STDOUT)
    with subprocess.Popen(
        list(command),
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=told,
        bufsize=0,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(ALIVE)
        started(process.stdin)
        if process.stdout is not None and line is not None:
            with io.TextIOWrapper(io.BufferedReader(cast(io.RawIOBase, process.stdout)), errors="replace") as text:
                for each in text:
                    line(each.rstrip("\n"))
        return process.wait()


class RunLock:
    """Held while an engine of the stack may be running. The kernel releases it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # A lock that is a mere file would outlive its holder: where the file system has none of the kernel's, we fail.
        self._lock = FileLock(path, thread_local=False, fallback_to_soft=False)

    def acquire(self, patience: float = 10.0) -> None:
        """Take the lock; raises StackError when another run still holds it after `patience` seconds."""
        make_private(self._path.parent)
        try:
            self._lock.acquire(timeout=patience, poll_interval=0.1)
        except Timeout:
            raise StackError(
                f"another run of this stack is under way ({self._path.stem})",
                why=f"{self._path} is locked",
                remedy="wait until it has ended, or end it",
            ) from None

    def remove(self) -> None:
        """Remove the file of a stack that is no more, while holding the lock, and release it."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Release the lock; does nothing where it is not held."""
        self._lock.release()


@contextlib.contextmanager
def at_work(directory: Path, *, alone: bool = False) -> Generator[bool, None, None]:
    """Hold a directory, as others do that are at work in it; or `alone`, which keeps them waiting.

    Yields whether it is held: alone, it is not where others are at work. The directory itself is the lock, so that
    nothing is left of it, and the kernel releases it when its holder dies.
    """
    while True:
        try:
            make_private(directory)
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # whoever was alone in it has just removed it
            continue
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            except BlockingIOError:
                yield False
                return
            if _is_still(directory, descriptor):
                yield True
                return
        finally:
            os.close(descriptor)


def _is_still(directory: Path, descriptor: int) -> bool:
    try:
        return directory.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def python_module(*arguments: str) -> list[str]:
    """The command line of one of this package's own commands."""
    return [sys.executable, "-m", "tools", *arguments]
