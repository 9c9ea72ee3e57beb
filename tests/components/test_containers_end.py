"""What is the first process of a container ends when it is asked to, at once: the kernel does not do it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import fetch_images, metrics, ramdisk_logs
from metal_ipi.components.provisioning.contract import Metrics
from tests.components.test_provisioning import SMALL


def _ended(command: list[str], directory: Path, ready: str, **environment: str) -> int:
    """How a program ends that is asked to once it has written a file."""
    process = subprocess.Popen(command, cwd=directory, env={"PATH": "/usr/bin:/bin", **environment})
    try:
        deadline = time.monotonic() + 20
        while not (directory / ready).exists():
            assert time.monotonic() < deadline and process.poll() is None, "it did not begin"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        return process.wait(5)
    finally:
        process.kill()


def test_metrics(tmp_path: Path) -> None:
    server = tmp_path / "cheroot"
    server.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/server\nexec sleep 60\n")
    server.chmod(0o755)
    command = metrics.container(SMALL, Metrics())["command"]
    assert _ended(command, tmp_path, "server", PATH=f"{tmp_path}:/usr/bin:/bin") == 0
    await_gone(int((tmp_path / "server").read_text()))


def await_gone(process: int) -> None:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{process}/stat").exists() and Path(f"/proc/{process}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the server still runs"
        time.sleep(0.05)


@pytest.mark.parametrize("program", [ramdisk_logs, fetch_images])
def test_programs(program: object, tmp_path: Path) -> None:
    """Not by the signal itself, but by what the program does then: 0, and not -15."""
    code = (
        "import runpy, sys, time; real = time.sleep\n"
        "def sleep(seconds):\n    open('asleep', 'w').close(); real(seconds)\n"
        "time.sleep = sleep\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    )
    path = str(getattr(program, "__file__", ""))
    (tmp_path / "images.json").write_text("[]")
    arguments = [str(tmp_path)] if program is ramdisk_logs else [str(tmp_path / "images.json"), str(tmp_path)]
    command = [sys.executable, "-c", code.replace("sys.argv[1]", repr(path)), *arguments]
    assert _ended(command, tmp_path, "asleep") == 0
