"""The lock of a state directory, which the lab's supervisor holds while it runs.

A process id in a file goes stale and gets reused. A POSIX record lock does neither: the kernel drops it with its
holder, and F_GETLK names the holder's process id, translated into the namespace of whoever asks.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_FLOCK = "hhqqi"  # struct flock: l_type, l_whence, l_start, l_len, l_pid


class Held(Exception):
    """Somebody else holds the lock."""


def hold(path: Path) -> int:
    """Take the lock for the rest of this process's life; raises Held. The descriptor returned must stay open."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Held(str(path)) from error
    return descriptor


def holder(path: Path) -> int | None:
    """The process id of the holder, None if there is none, 0 if it is in a namespace above ours (we are inside)."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if answer[0] == fcntl.F_UNLCK else max(int(answer[4]), 0)


@dataclass(frozen=True)
class Supervisor:
    """A running supervisor, held by a pidfd: signals can never reach a process that inherited its number."""

    pid: int
    """Its process id, as we see it."""
    pidfd: int
    """What signals go through."""

    @classmethod
    def find(cls, lock: Path) -> Supervisor | None:
        """The supervisor that holds `lock`, if one runs that we can see."""
        pid = holder(lock)
        if not pid:
            return None
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        if holder(lock) != pid:  # it died between the two: the number may be somebody else's by now
            os.close(pidfd)
            return None
        return cls(pid, pidfd)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens if it is gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within `seconds`."""
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def stop(self, grace: float) -> None:
        """Ask it to end; after `grace` seconds, kill it."""
        self.send(signal.SIGTERM)
        if not self.wait(grace):
            self.send(signal.SIGKILL)
            self.wait(10)


def wait_gone(lock: Path, seconds: float) -> bool:
    """Whether nobody holds `lock` any more within `seconds`."""
    deadline = time.monotonic() + seconds
    while holder(lock) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
