"""Drivers that need a network, mounts and processes of their own, started in namespaces."""

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

_ROOT = Path(__file__).resolve().parents[2]
_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_AS_ROOT = (*_UNSHARE, "--user", "--map-root-user")
_INIT = ("sh", "-c", '"$@"; exit $?', "init")
"""QEMU's daemons need somebody to reap them."""


def require_libvirt(*, programs: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Skip what needs libvirt machines where they cannot be, or something else is missing."""
    missing = [name for name in (*PROGRAMS, *programs) if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin") is None]
    missing += [path for path in files if not Path(path).exists()]
    if missing:
        pytest.skip(f"libvirt machines need {', '.join(missing)}")


def observed(driver: str, state: Path, *arguments: str, seconds: float, libvirt: bool = False) -> dict[str, Any]:
    """What a driver, a module's name, prints about what it saw.

    It runs in a user namespace where that is possible, root or not: what works there works for root as well. Libvirt
    machines need the real root.
    """
    ways = (_UNSHARE,) if libvirt else (_AS_ROOT, _UNSHARE)
    tried = (subprocess.run([*way, "true"], capture_output=True, check=False).returncode for way in ways)
    enter = next((way for way, status in zip(ways, tried, strict=True) if status == 0), None)
    if enter is None:
        pytest.skip("this system refuses namespaces")
    command = [*enter, *_INIT, sys.executable, "-m", driver, str(state), *arguments]
    result = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
