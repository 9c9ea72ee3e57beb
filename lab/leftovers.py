"""Checks that a lab left nothing behind (process, namespace, mount or file), and lists what existed before the stop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.hub import cgroups
from lab.layout import Layout
from lab.network import namespaces
from lab.supervision import holder

_KINDS = ("pid", "net", "mnt")
_SETTLE = 5.0
"""Seconds that the kernel gets to finish what it does when process 1 of a pid namespace ends."""


@contextmanager
def watched_namespaces(layout: Layout) -> Generator[dict[str, str], None, None]:
    """The running lab's namespaces by kind, kept from being reused until the block ends.

    The kernel gives the number of a namespace that is gone to the next one. We hold the lab's open, so that whoever
    is found in a namespace of that number really is in the lab's.
    """
    pid = holder(layout.lock)
    opened: list[int] = []
    found: dict[str, str] = {}
    try:
        if pid:
            for kind in _KINDS:
                opened.append(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC))
                found[kind] = str(Path(f"/proc/self/fd/{opened[-1]}").readlink())
        yield found
    finally:
        for descriptor in opened:
            os.close(descriptor)


def held(layout: Layout) -> list[str]:
    """What remains in the API and the DNS of the running lab: devices, keys, records. An error while asking counts,
    too."""
    command = [sys.executable, "-m", "lab", "run", "--state", str(layout.state), "--"]
    root = str(Path(__file__).resolve().parents[1])
    answer = subprocess.run(
        [*command, sys.executable, "-m", "lab.network.inventory", "--state", str(layout.state)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if answer.returncode != 0:
        return [
            f"it is not known what the lab still uses: {answer.stderr.strip().splitlines()[-1:] or answer.returncode}"
        ]
    return json.loads(answer.stdout)


def find(layout: Layout, spaces: dict[str, str] | None = None, settle: float = _SETTLE) -> list[str]:
    """What remains of a lab that was stopped; empty if nothing does. `spaces` are namespaces to look for."""
    deadline = time.monotonic() + settle
    while True:
        left = [*_processes(layout.state, spaces or {}), *_mounts(layout, spaces or {})]
        left += cgroups.left(cgroups.name(layout.state))
        if not left or time.monotonic() > deadline:
            return [*left, *_files(layout)]
        time.sleep(0.05)


def users(directory: Path, settle: float = _SETTLE) -> list[str]:
    """Processes that were started for a directory of the lab's or have something of it among their mounts."""
    deadline = time.monotonic() + settle
    while (left := [*_processes(directory, {})]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _processes(directory: Path, spaces: dict[str, str]) -> Iterator[str]:
    """Processes in these namespaces or in mounts of the directory, holding the namespaces open, or started for it."""
    state = os.fsencode(directory)
    wanted = set(spaces.values())
    mine = _ancestry()
    usual = namespaces.identity("self", "mnt")
    for pid in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        if int(pid) in mine:
            continue
        process = Path("/proc", pid)
        with suppress(OSError):  # it ended, or is another user's: then the lab's it is not
            reasons = [f"in its {kind} namespace" for kind, space in spaces.items() if _space(pid, kind) == space]
            if (
                not reasons
                and _space(pid, "mnt") not in {usual, None}
                and state in (process / "mountinfo").read_bytes()
            ):
                reasons.append("in its mounts")
            command = (process / "cmdline").read_bytes().split(b"\0")
            if not reasons and any(word == state or word.startswith(state + b"/") for word in command):
                reasons.append("started for it")
            if not reasons and wanted and _holds(process, wanted):
                reasons.append("holding its namespaces open")
            if reasons:
                yield f"process {pid} ({', '.join(reasons)}): {b' '.join(command).decode(errors='replace').strip()}"


def _ancestry() -> set[int]:
    """We and those that started us: they may well name the state directory."""
    pids = {os.getpid()}
    pid = os.getpid()
    while pid > 1:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pid = int(fields[1])
        pids.add(pid)
    return pids


def _space(pid: str, kind: str) -> str | None:
    try:
        return namespaces.identity(pid, kind)
    except OSError:
        return None


def _holds(process: Path, wanted: set[str]) -> bool:
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            if str(descriptor.readlink()) in wanted:
                return True
    return False


def _mounts(layout: Layout, spaces: dict[str, str]) -> Iterator[str]:
    """Mounts of the state directory, and those that keep a namespace, as `ip netns` makes them."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        source, target = line.split()[3:5]
        if source in spaces.values():
            yield f"namespace {source}, kept at {target}"
        elif Path(target).is_relative_to(layout.state) or Path(source).is_relative_to(layout.state):
            yield f"mount {target}"


def _files(layout: Layout) -> Iterator[str]:
    """The state directory, and what names the lab among the temporary files."""
    for path in (layout.state, layout.removed):
        if path.exists():
            yield f"directory {path}"
    for directory in {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run")}:
        with suppress(OSError):
            for entry in directory.glob("metal-ipi-lab*"):
                yield f"temporary file {entry}"
