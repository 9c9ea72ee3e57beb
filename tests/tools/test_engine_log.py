"""The engine's own log: it is kept where it is asked for, and only there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real_engine import ENGINE, needs_engine
from tools.project import choose_log

pytestmark = needs_engine


def _run(home: Path) -> list[Path]:
    """The logs that are there after the engine has run."""
    environment = {
        **os.environ,
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": f"file://{home}",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    subprocess.run([str(ENGINE), "stack", "ls", "--all"], cwd=home, env=environment, check=True, timeout=60)
    return list((home / "logs").glob("*.log")) if (home / "logs").is_dir() else []


def test_the_engine_runs_with_and_without_a_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    choose_log(tmp_path, wanted=False)
    assert _run(tmp_path) == [] and "ENGINE_LOG" in (tmp_path / "logs").read_text()
    choose_log(tmp_path, wanted=True)
    assert len(_run(tmp_path)) == 1
    choose_log(tmp_path, wanted=True)
    assert len(_run(tmp_path)) == 2
    choose_log(tmp_path, wanted=False)
    assert _run(tmp_path) == []
    assert "log" not in capfd.readouterr().err


def test_a_log_that_is_being_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as where another engine begins one at the same moment
        choose_log(tmp_path, wanted=False)
    assert (tmp_path / "logs").is_dir()
    choose_log(tmp_path, wanted=False)
    assert (tmp_path / "logs").is_file()
