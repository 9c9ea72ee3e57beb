"""The hub's part of each cgroup hierarchy. The kubelet makes its pods' cgroups below it, and none elsewhere."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
_KINDS = ("cgroup", "cgroup2")
_INHERITED = ("cpuset.cpus", "cpuset.mems")
"""The files of a new cgroup of version 1 that must be set before a process can be added."""
_SETTLE_SECONDS = 5.0


def name(state: Path) -> str:
    """The path of a lab's hub in each hierarchy."""
    return f"/metal-ipi-hub-{hashlib.sha256(os.fsencode(state)).hexdigest()[:8]}"


def hierarchies(mounts: Path = MOUNTS) -> list[Path]:
    """The mount points of the hierarchies."""
    found: list[Path] = []
    for line in mounts.read_text().splitlines():
        place, _, source = line.partition(" - ")
        if source.split()[0] in _KINDS:
            found.append(Path(place.split()[4]))
    return found


def make(path: str) -> None:
    """Make the cgroup in each hierarchy; repeating it changes nothing."""
    for hierarchy in hierarchies():
        own = hierarchy / path.lstrip("/")
        own.mkdir(exist_ok=True)
        for setting in _INHERITED:
            inherited = hierarchy / setting
            if inherited.exists() and not (own / setting).read_text().strip():
                (own / setting).write_text(inherited.read_text())


def remove(path: str, settle: float = _SETTLE_SECONDS) -> None:
    """Remove the cgroup from each hierarchy, with all below it. What still has processes stays; `left` tells it."""
    deadline = time.monotonic() + settle  # the kernel may still be ending the processes
    while places := _places(path):
        for own in places:
            for directory, _, _ in os.walk(own, topdown=False):
                with suppress(OSError):
                    Path(directory).rmdir()
        if not _places(path) or time.monotonic() > deadline:
            return
        time.sleep(0.05)


def processes(path: str) -> set[int]:
    """The processes in the cgroup and below, by the ids that they have here."""
    found: set[int] = set()
    for own in _places(path):
        for directory, _, _ in os.walk(own):  # which passes over what is removed meanwhile
            with suppress(OSError):
                found.update(map(int, (Path(directory) / "cgroup.procs").read_text().split()))
    return found


def left(path: str) -> list[str]:
    """The hierarchies that still have the cgroup."""
    return [f"cgroup {own}" for own in _places(path)]


def _places(path: str) -> list[Path]:
    return [own for hierarchy in hierarchies() if (own := hierarchy / path.lstrip("/")).is_dir()]
