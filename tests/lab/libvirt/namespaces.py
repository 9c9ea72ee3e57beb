"""Drivers that boot emulated machines, started in namespaces of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lab.machines.libvirt import PROGRAMS

_ROOT = Path(__file__).resolve().parents[3]
_NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_INIT = ("sh", "-c", '"$@"; exit $?', "init")
"""QEMU's daemons need somebody to reap them."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def require(*, programs: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Skip what needs libvirt machines where they cannot be, or something else is missing."""
    missing = [name for name in (*PROGRAMS, *programs) if shutil.which(name, path=_PATH) is None]
    missing += [path for path in files if not Path(path).exists()]
    if missing:
        pytest.skip(f"libvirt machines need {', '.join(missing)}")
    if subprocess.run([*_NAMESPACES, "true"], capture_output=True, check=False).returncode:
        pytest.skip("libvirt machines need namespaces, which this system refuses")


def observed(driver: str, state: Path, *arguments: str, seconds: float) -> dict[str, Any]:
    """What a driver of this package prints about what it saw."""
    result = subprocess.run(
        # The shell is init there: QEMU's daemons need somebody to reap them.
        [
            *_NAMESPACES,
            "sh",
            "-c",
            '"$@"; exit $?',
            "init",
            sys.executable,
            "-m",
            f"{__package__}.{driver}",
            str(state),
            *arguments,
        ],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
