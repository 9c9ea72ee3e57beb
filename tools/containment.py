"""Makes sure that nothing which an engine started outlives it: a plug-in that continues alone could create machines
that no state knows.

The engine's process is the first process of its own PID namespace: when it ends, the kernel kills all others. Its
standard input is a pipe from the outer process (called leash). When the outer process ends for any reason, the pipe
closes, and the engine's process ends too. So nothing is left, whichever process is killed first:

    outer killed    -> the pipe closes -> the engine's process exits -> the kernel kills engine and plug-ins
    engine killed   -> the engine's process sees it, reports and exits -> the kernel kills the plug-ins
    process between -> the outer process closes the pipe and waits for the stack's lock

The inner processes of a facility with worker pools are started by fork_server.py, with the same effect.
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
from typing import IO, NoReturn, cast

from filelock import FileLock, Timeout

from tools.errors import StackError
from tools.files import make_private

ALIVE = b"+"
"""The first byte on the pipe: the outer process holds it."""
STOP = b"s"
"""Asks the inner process to cancel the operation, as Ctrl-C does."""
LOOKING = frozenset({"preflight", "sweep"})
"""Operations of the inner process that do not use the stack's state: they get a temporary one."""
LEFT, HAS_WORK = "left", 3
"""The operation that asks whether an `up` has nothing to do, and its exit status if it has."""

_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
_WAYS: tuple[tuple[str, ...], ...] = (_UNSHARE, (*_UNSHARE, "--user", "--map-current-user"))


def contained(command: Sequence[str]) -> list[str]:
    """The command line that runs a command in its own PID namespace; the unchanged command if that is forbidden."""
    if shutil.which(_UNSHARE[0]):
        for way in _WAYS:
            probe = subprocess.run([*way, "--", "true"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
            if probe.returncode == 0:
                return [*way, "--", *command]
    print("no PID namespace is permitted here: after a kill -9 the plug-ins may go on for a while", file=sys.stderr)
    return list(command)


def hold_leash(on_stop: Callable[[], None], on_end: Callable[[], None]) -> None:
    """Watches standard input, whose other end the outer process holds: a request to stop calls `on_stop`; when the pipe
    closes, calls `on_end` and ends this process."""
    if os.read(0, 1) != ALIVE:
        raise StackError(
            "the engine's process was started directly",
            why="standard input is not the pipe that the outer process holds",
            remedy="use `python -m tools up` (or down, ...); `engine` is for internal use",
        )
    # The engine and its plug-ins must not inherit the pipe.
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
    """Runs a command whose standard input is the pipe (leash) that we hold; returns its exit status.

    Args:
        started: gets the pipe.
        line: gets each line of the command's output; None: the output goes to our standard output.
    """
    # With its own session, Ctrl-C reaches only us, and we decide what to do.
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
    """A lock that is held while an engine of the stack may be running. The kernel releases it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # A lock that is only a file would outlive its holder. So we fail if the file system does not support kernel
        # locks.
        self._lock = FileLock(path, thread_local=False, fallback_to_soft=False)

    def acquire(self, patience: float = 10.0) -> None:
        """Takes the lock; raises StackError if another run still holds it after `patience` seconds."""
        make_private(self._path.parent)
        try:
            self._lock.acquire(timeout=patience, poll_interval=0.1)
        except Timeout:
            raise StackError(
                f"another run of this stack is in progress ({self._path.stem})",
                why=f"{self._path} is locked",
                remedy="wait until it has ended, or end it",
            ) from None

    def remove(self) -> None:
        """Deletes the lock file of a stack that no longer exists, and releases the lock."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Releases the lock; does nothing if it is not held."""
        self._lock.release()


@contextlib.contextmanager
def at_work(directory: Path, *, alone: bool = False) -> Generator[bool, None, None]:
    """Holds a shared lock on a directory while working in it; with `alone` an exclusive one, which makes others wait.

    Yields whether the lock is held: an exclusive lock is not taken while others hold it. The directory itself is
    locked, so no lock file remains, and the kernel releases the lock when its holder dies.
    """
    while True:
        try:
            make_private(directory)
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another process has just removed it
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


def end(status: int) -> NoReturn:
    """Ends this process at once, after printing what it has to: its threads may still wait for an engine that was
    killed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):
            stream.flush()
    os._exit(status)


def python_module(*arguments: str) -> list[str]:
    """The command line of one of this package's own commands."""
    return [sys.executable, "-m", "tools", *arguments]
