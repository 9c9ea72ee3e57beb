"""How packages are installed: tools/venv.sh with a Python that writes down what it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PYTHON = """#!/bin/sh
echo "$*" >>"{asked}"
case "$*" in
{answers}
esac
"""
_WANTED = "requirements-lab.txt"
_PIP = f"-m pip --disable-pip-version-check install --quiet -r {_WANTED}"


@pytest.mark.parametrize(
    ("answers", "installed"),
    [
        ("", "uv"),
        ("*'config list'*) echo \"global.timeout='180'\" ;;", "uv"),
        ("*'config list'*) echo \"global.index-url='https://mirror.example.com/simple'\" ;;", "pip"),
        ("*'config list'*) echo \":env:.extra-index-url='https://mirror.example.com/simple'\" ;;", "pip"),
        ("*'config list'*) echo \"global.proxy='http://proxy.example.com:3128'\" ;;", "pip"),
        ("*requirements-uv.txt*) exit 1 ;;", "pip"),
        ("'-m uv '*) exit 2 ;;", "uv, then pip"),
    ],
)
def test_uv_installs_unless_pip_has_another_index_or_uv_fails(tmp_path: Path, answers: str, installed: str) -> None:
    done, asked = _install(tmp_path, answers)
    assert done.returncode == 0, done.stderr
    uv = f"-m uv pip install --quiet --python {tmp_path}/venv/bin/python -r {_WANTED}"
    names = {uv: "uv", _PIP: "pip"}
    assert ", then ".join(names[line] for line in asked if line in names) == installed
    assert (tmp_path / "ready").read_text() == (tmp_path / "venv" / ".ready").read_text()


def test_where_both_fail_pip_tells_why_and_the_next_run_tries_again(tmp_path: Path) -> None:
    done, asked = _install(
        tmp_path, f"'-m uv '*) echo uv said >&2; exit 2 ;; '{_PIP}') echo no such version >&2; exit 1 ;;"
    )
    assert done.returncode == 1 and asked[-1] == _PIP
    assert "no such version\n" in done.stderr and "uv said" not in done.stderr
    assert f"error: {_WANTED} could not be installed\n  why: pip's message is above\n" in done.stderr
    assert not (tmp_path / "ready").exists()


def _install(scratch: Path, answers: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script; also what the environment's Python was asked for."""
    python, asked = scratch / "venv" / "bin" / "python", scratch / "asked"
    python.parent.mkdir(parents=True)
    python.write_text(_PYTHON.format(asked=asked, answers=answers))
    python.chmod(0o755)
    command = ["sh", "tools/venv.sh", sys.executable, str(scratch / "venv"), _WANTED, str(scratch / "ready")]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=60)
    return done, asked.read_text().splitlines()
