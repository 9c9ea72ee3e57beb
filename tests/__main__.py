"""The tests, as `make test` runs them: `python -m tests`; as `make test-all` does: `python -m tests --all`; and those
of `make check`: `python -m tests --quick`.

What starts the engine, labs or other programs runs two at a time, and all the rest beside it, for either waits now and
then; what runs a real Ironic waits for it most of the time, and has a process of its own. What boots emulated machines
wants the processors for itself, and comes last; by day beside hubs. Tests that run OpenShift's own programs are not
among them: `make conformance` builds those programs, which takes a quarter of an hour once, and runs these tests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from lab import setup
from lab.kubernetes import programs
from tests import browser
from tests.groups import EMULATED, IRONIC, QUICK, REST, STARTING, Group
from tests.lab.hub import hub

_ROOMS = ["binaries", "cluster_api", "components", "lab", "metal_ipi", "policy", "provider", "stacks", "tools"]
_MACHINES = "tests/lab/libvirt"


def main(arguments: Sequence[str]) -> int:
    """Run them and print what each printed; 0 when all passed."""
    parser = argparse.ArgumentParser(prog="python -m tests", description="run the tests")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="also those marked `nightly`: an hour and a half more")
    which.add_argument("--quick", action="store_true", help="those of `make check` alone")
    given = parser.parse_args(arguments)
    night: bool = given.all
    # A user's Python compiles a module once, and so do all Pythons that tests start, whatever the variable says here.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def pytest(group: Group, *options: str, below: str = "", but: str = "") -> list[str]:
        durations = ("--durations=25", "--durations-min=10")
        group = group if night else group.by_day
        files = [file for file in group.files() if file.startswith(below) and not (but and file.startswith(but))]
        return [sys.executable, "-m", "pytest", "-rs", *durations, *options, "-m", group.expression, *files]

    if given.quick:
        return subprocess.call(pytest(QUICK, "-q", "-n", str(os.cpu_count()), "--dist", "worksteal"))
    browser.set_up(print)
    hub.set_up(print)
    if not isinstance(programs.find(), str):
        setup.announcing(print)
    # The copies that tests make of the project have what is compiled from here.
    subprocess.run([sys.executable, "-m", "compileall", "-q", *_ROOMS], check=True)
    beside = ("-q", "-p", "no:cacheprovider")
    statuses = _together(
        pytest(STARTING, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        pytest(REST, *beside),
        pytest(IRONIC, *beside),
    )
    if night:  # it tells how long addresses are away, which nothing may disturb
        statuses += _together(pytest(EMULATED))
    else:
        statuses += _together(pytest(EMULATED, but=_MACHINES), pytest(EMULATED, *beside, below=_MACHINES))
    return int(any(statuses))


def _together(command: list[str], *others: list[str]) -> list[int]:
    """Run commands side by side; what the others printed is printed when all have ended. The status of each."""
    with contextlib.ExitStack() as files:
        running = list[tuple[IO[str], subprocess.Popen[bytes]]]()
        for other in others:
            told = files.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            running.append((told, subprocess.Popen(other, stdout=told, stderr=subprocess.STDOUT)))
        statuses = [subprocess.call(command)]
        for told, process in running:
            statuses.append(process.wait())
            told.seek(0)
            sys.stdout.writelines(told)
            sys.stdout.flush()
    return statuses


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
