"""Processes by their parents: what belongs to a run, and ending it the hard way."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process; a number that is used again later is another process."""

    pid: int
    started: str
    """Clock ticks since the system's start, as the kernel writes them."""
    command: tuple[str, ...]

    @property
    def program(self) -> str:
        """The file name of what runs."""
        return Path(self.command[0]).name if self.command else ""

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        found = _stat(self.pid)
        return found is not None and found[2] == self.started and found[0] not in "ZX"


def process(pid: int) -> Process | None:
    """The process of a number."""
    found = _stat(pid)
    if found is None:
        return None
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return Process(pid, found[2], tuple(word.decode(errors="replace") for word in words if word))
    return None


def alive(pid: int) -> bool:
    """Whether the process of a number runs; a zombie does not, that nobody reaps under some containers' init."""
    found = process(pid)
    return found is not None and found.alive()


def family(pid: int) -> list[Process]:
    """A process and all below it, those in other namespaces too."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _stat(int(entry.name))):
            parents.setdefault(int(found[1]), []).append(int(entry.name))
    members: list[Process] = []
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        waiting += parents.get(current, [])
        found = process(current)
        if found is not None:
            members.append(found)
    return members


def mentioning(path: Path) -> list[Process]:
    """Processes whose command line names a path or something below it, or that work there."""
    members: list[Process] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        found = process(int(entry.name))
        directory = ""
        with suppress(OSError):
            directory = str((entry / "cwd").readlink())
        if found and (any(str(path) in word for word in found.command) or Path(directory).is_relative_to(path)):
            members.append(found)
    return [member for member in members if member.alive()]


def kill(members: Iterable[Process]) -> None:
    """kill -9, each of them."""
    for member in members:
        if member.alive():
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)


def survivors(members: Iterable[Process], seconds: float = 10.0) -> list[Process]:
    """Those that still run after the kernel had its time."""
    deadline = time.monotonic() + seconds
    left = list(members)
    while left and time.monotonic() < deadline:
        left = [member for member in left if member.alive()]
        time.sleep(0.02)
    return left


def processor_seconds() -> float:
    """What all that has ended of this process's children has taken of the processors."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _stat(pid: int) -> tuple[str, str, str] | None:
    """State, parent and start time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return fields[0], fields[1], fields[19]
