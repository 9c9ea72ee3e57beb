"""A preview of a real facility's stack needs neither network nor credentials, and leaves no trace."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.project import Project
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine]

_USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
OFFLINE = ["unshare", *_USER, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""Nothing but loopback, by which the engine and its language host talk to each other."""


def test_preview_without_network_and_credentials(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(print)
    _git(project.root, "init", "--quiet")
    (project.root / ".git" / "info" / "exclude").write_text(".venv\n")
    project.restore()
    _git(project.root, "add", "--all")
    _git(project.root, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "all")
    command = [*OFFLINE, "make", "-s", "preview", "STACK=da11"]
    env = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, timeout=60, check=False)
    started = time.monotonic()

    done = subprocess.run(
        command, cwd=project.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip

    seconds = time.monotonic() - started
    with capsys.disabled():
        print(f"\nmake preview STACK=da11 without network: {seconds:.1f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "da11-worker-2-device" in done.stdout and "to create" in done.stdout, done.stdout
    assert "cost: not known: a rehearsal asks nobody for prices" in done.stdout, done.stdout
    assert seconds <= 10, "it should be 5 s on a machine that does nothing else"
    assert _git(project.root, "status", "--porcelain", "--ignored=no") == ""
    assert not (project.root / ".state").exists()


def _git(directory: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=True).stdout
