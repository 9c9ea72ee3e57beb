"""Drivers that need a network and mounts of their own, started in namespaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
_ROOT = Path(__file__).resolve().parents[3]


def _enter() -> list[str]:
    """A user namespace where that is possible, root or not: what works there works for root as well."""
    complaint = ""
    for command in ([*_UNSHARE, "--user", "--map-root-user"], _UNSHARE):
        tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return command
        complaint = tried.stderr.strip()
    pytest.skip(f"this system refuses namespaces: {complaint}")


def observed(driver: str, state: Path) -> dict[str, Any]:
    """What a driver of this package prints about what it saw."""
    result = subprocess.run(
        [*_enter(), sys.executable, "-m", f"{__package__}.{driver}", str(state)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
