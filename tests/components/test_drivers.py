"""The command that starts a driver: it finds Python and the package, from wherever the program runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from metal_ipi.components import drivers
from metal_ipi.components.install import driver


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program's directory, with an environment of its own in it."""
    python = tmp_path / "its own" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_driver_of_a_checkout_elsewhere_is_started(project: Path) -> None:
    create, folder = drivers.started(driver.__name__)
    assert folder is not None
    result = subprocess.run(["sh", "-c", create], input="{}", capture_output=True, text=True, check=False, cwd=folder)
    assert (result.returncode, result.stderr) == (64, "the request is incomplete: KeyError('installer')\n")


def test_no_path_of_the_machine_is_named_where_none_is_needed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "_ROOT", project)
    assert drivers.started("x.y") == ("exec 'its own/bin/python' -m x.y", None)
