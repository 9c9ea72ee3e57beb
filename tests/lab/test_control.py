"""The supervisor that a lab keeps where two were started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab import control
from lab.control import Wanted
from lab.layout import Layout
from lab.supervision import holder
from tests.lab.waiting import until

pytestmark = pytest.mark.programs

_HOLDING = """
import sys, time
from pathlib import Path
from lab.supervision import hold
lock = hold(Path(sys.argv[1]))
time.sleep(120)
"""


@pytest.fixture
def stack() -> Generator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def _started(stack: ExitStack, *command: str) -> subprocess.Popen[bytes]:
    process = stack.enter_context(subprocess.Popen(command))
    stack.callback(process.kill)
    return process


@pytest.mark.parametrize("is_first", [True, False])
def test_a_supervisor_that_comes_second_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack, is_first: bool
) -> None:
    layout, spawned = Layout.of(str(tmp_path / "lab")), list[subprocess.Popen[bytes]]()
    holding = (sys.executable, "-c", _HOLDING, str(layout.lock))

    def spawn(wanted: Wanted) -> subprocess.Popen[bytes]:
        ours = ("sh", "-c", '"$@" & wait', "sh", *holding) if is_first else ("sleep", "120")
        spawned.append(_started(stack, *ours))
        if not is_first:
            _started(stack, *holding)
        until(lambda: holder(layout.lock))
        pid = holder(layout.lock)
        assert pid
        stack.callback(os.kill, pid, signal.SIGKILL)
        layout.status.write_text(json.dumps({"state": "ready", "services": {}}))
        return spawned[0]

    monkeypatch.setattr(control, "_spawn", spawn)
    monkeypatch.setattr(control, "_prepare", lambda *of: None)
    control.up(Wanted(layout=layout, machines="simulated", openshift=lambda: pytest.fail("asked for")), print)
    assert Path(f"/proc/{spawned[0].pid}").exists() is is_first
    assert holder(layout.lock)
