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
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from tools.errors import StackError
from tools.files import make_private

ALIVE = b"+"
"""The first byte on the leash: the outer process holds it."""
STOP = b"s"
"""Asks the inner process to cancel the operation, as Ctrl-C does."""

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


def run_leashed(command: Sequence[str], *, cwd: Path, env: dict[str, str], started: Callable[[IO[bytes]], None]) -> int:
    """Run a command that holds our leash; returns its exit status. `started` is given the leash."""
    # A session of its own: Ctrl-C reaches only us, and we decide what becomes of it.
    with subprocess.Popen(
        list(command), cwd=cwd, env=env, stdin=subprocess.PIPE, bufsize=0, start_new_session=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(ALIVE)
        started(process.stdin)
        return process.wait()


class RunLock:
    """Held while an engine of the stack may be running. The kernel lets go of it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: IO[str] | None = None

    def acquire(self, patience: float = 10.0) -> None:
        """Take the lock; raises StackError when another run still holds it after `patience` seconds."""
        make_private(self._path.parent)
        handle = self._path.open("a")
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    handle.close()
                    raise StackError(
                        f"another run of this stack is under way ({self._path.stem})",
                        why=f"{self._path} is locked",
                        remedy="wait until it has ended, or end it",
                    ) from None
                time.sleep(0.1)
                continue
            if self._is_current(handle):
                self._handle = handle
                return
            # The last holder removed the file when it took the stack down: lock the new one.
            handle.close()
            handle = self._path.open("a")

    def remove(self) -> None:
        """Remove the file of a stack that is no more, while holding the lock, and let go."""
        self._path.unlink(missing_ok=True)
        self.release()

    def _is_current(self, handle: IO[str]) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.fstat(handle.fileno()).st_ino == self._path.stat().st_ino
        return False

    def release(self) -> None:
        """Let go."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def python_module(*arguments: str) -> list[str]:
    """The command line of one of this package's own commands."""
    return [sys.executable, "-m", "tools", *arguments]
