"""Pythons that the project says it runs under."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_NEWEST = "3.14"
"""Not run by anybody yet: what can be known of it without it is tested."""
_NO_WHEEL = {"pulumi-equinix-metal"}
"""Nobody publishes one for any Python; its source is Python alone."""
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64", "any")


def test_all_places_name_the_same_versions() -> None:
    project = (_ROOT / "pyproject.toml").read_text()
    found = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project)
    assert found
    oldest, newest = int(found[1]), int(found[2]) - 1
    assert f'target-version = "py3{oldest}"' in project and f'pythonVersion = "3.{oldest}"' in project
    for name in ("README.md", "tools/venv.sh"):
        assert f"Python 3.{oldest} to 3.{newest}" in (_ROOT / name).read_text(), name
    assert f"not (3, {oldest}) <= sys.version_info[:2] <= (3, {newest})" in (_ROOT / "tools/venv.sh").read_text()
    assert f"3.{newest}" == _NEWEST


@pytest.mark.nightly
def test_everything_pinned_can_be_installed_under_the_newest(tmp_path: Path) -> None:
    """Wheels for Linux, of what is pinned and of what that needs."""
    lines = [line for path in sorted(_ROOT.glob("requirements*.txt")) for line in path.read_text().splitlines()]
    pinned = [line for line in lines if "==" in line]
    wanted = [line for line in pinned if line.partition("==")[0] not in _NO_WHEEL]
    assert len(pinned) - len(wanted) == len(_NO_WHEEL)
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--target", str(tmp_path / "none"), "--python-version", _NEWEST]
    command += [word for platform in _PLATFORMS for word in ("--platform", platform)]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_types_check_under_the_newest() -> None:
    command = [sys.executable, "-m", "pyright", "--pythonversion", _NEWEST]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
