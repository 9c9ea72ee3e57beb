"""The tests, as `make test` runs them: `python -m tests`; as `make test-all` does: `python -m tests --all`.

What starts the engine, labs or other programs runs two at a time, and all the rest beside it, for either waits now and
then; what runs a real Ironic waits for it most of the time, and has a process of its own. What boots emulated machines
wants the processors for itself, and comes last; by day beside hubs. Tests that run OpenShift's own programs are not
among them: `make conformance` builds those programs, which takes a quarter of an hour once, and runs these tests.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from lab import setup
from lab.kubernetes import programs
from tests import browser
from tests.lab.hub import hub

_ROOMS = ["binaries", "cluster_api", "components", "lab", "metal_ipi", "policy", "provider", "stacks", "tools"]
_ELSEWHERE = "not libvirt and not conformance and not ironic"
_STARTING = f"(engine or lab or programs) and {_ELSEWHERE}"
_IRONIC = "ironic and not libvirt"
_REST = f"not (engine or lab or programs) and {_ELSEWHERE}"
_EMULATED = "libvirt"
_MACHINES = "tests/lab/libvirt"


def main(arguments: Sequence[str]) -> int:
    """Run all and print what each printed; 0 when all passed. Without `--all`: but for the tests of the night."""
    parser = argparse.ArgumentParser(prog="python -m tests", description="run the tests")
    parser.add_argument("--all", action="store_true", help="also those marked `nightly`: an hour and a half more")
    night = parser.parse_args(arguments).all
    chosen = "" if night else " and not nightly"

    def pytest(which: str, *options: str) -> list[str]:
        durations = ("--durations=25", "--durations-min=10")
        return [sys.executable, "-m", "pytest", "-rs", *durations, *options, "-m", which + chosen]

    browser.set_up(print)
    hub.set_up(print)
    if not isinstance(programs.find(), str):
        setup.announcing(print)
    # A user's Python compiles a module once; the copies that tests make of the project have it from here.
    subprocess.run([sys.executable, "-m", "compileall", "-q", *_ROOMS], check=True)
    beside = ("-q", "-p", "no:cacheprovider")
    statuses = _together(
        pytest(_STARTING, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        pytest(_REST, *beside),
        pytest(_IRONIC, *beside),
    )
    if night:  # it tells how long addresses are away, which nothing may disturb
        statuses += _together(pytest(_EMULATED))
    else:
        statuses += _together(pytest(_EMULATED, f"--ignore={_MACHINES}"), pytest(_EMULATED, *beside, _MACHINES))
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
