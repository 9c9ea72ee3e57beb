"""What is the first process of a container ends when it is asked to, at once: the kernel does not do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import fetch_images, metrics, ramdisk_logs
from metal_ipi.components.provisioning.contract import Metrics
from tests.components.test_provisioning import SMALL
from tests.lab.waiting import processes, until

_UNTIL_ASLEEP = """\
import runpy, sys, time
pause = time.sleep
def sleep(seconds):
    open("begun", "w").close()
    pause(seconds)
time.sleep = sleep
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
"""Runs a program, and leaves the file `begun` when that sleeps for the first time."""


def _ended(command: list[str], directory: Path, path: str = "/usr/bin:/bin") -> int:
    """How a program ends that is asked to once the file `begun` is there: 0, and not -15, as the signal itself does."""
    process = subprocess.Popen(command, cwd=directory, env={"PATH": path})
    try:
        until((directory / "begun").exists, 20)
        process.terminate()
        return process.wait(20)
    finally:
        process.kill()
        process.wait()


def test_metrics(tmp_path: Path) -> None:
    server = tmp_path / "cheroot"
    server.write_text("#!/bin/sh\ntouch begun\nexec sleep 61.25\n")
    server.chmod(0o755)
    command = metrics.container(SMALL, Metrics())["command"]
    assert _ended(command, tmp_path, f"{tmp_path}:/usr/bin:/bin") == 0
    until(lambda: not processes("sleep\0" + "61.25"), 5)


@pytest.mark.parametrize("program", [ramdisk_logs.__file__, fetch_images.__file__])
def test_programs(program: str, tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text("[]")
    arguments = [str(tmp_path)] if program == ramdisk_logs.__file__ else ["images.json", str(tmp_path)]
    assert _ended([sys.executable, "-c", _UNTIL_ASLEEP, program, *arguments], tmp_path) == 0
