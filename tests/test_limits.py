"""No test can hang a run: each has a limit, and a run in the background interrupts what it starts as any other does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_TESTS = """
import signal, threading, time
import pytest

def waits_beside():
    time.sleep(60)

@pytest.mark.timeout(0.3)
def test_hangs():
    threading.Thread(target=waits_beside, daemon=True).start()
    time.sleep(60)

def test_is_interrupted(request):
    assert request.node.get_closest_marker("timeout").args == (120,)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

@pytest.mark.engine
@pytest.mark.lab
def test_has_the_limit_of_the_longer_kind(request):
    assert request.node.get_closest_marker("timeout").args == (900,)
"""


@pytest.mark.programs
def test_a_hanging_test_fails_with_all_stacks_and_the_others_run(tmp_path: Path) -> None:
    """As under nohup: with SIGINT ignored."""
    (tmp_path / "test_some.py").write_text(_TESTS)
    options = ["-q", "-c", "pyproject.toml", "-p", "no:cacheprovider", "-p", "tests.conftest", str(tmp_path)]
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", *options],
        cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "1 failed, 2 passed" in said, said
    assert "Failed: Timeout (>0.3s) from pytest-timeout" in said and "in waits_beside" in said, said
