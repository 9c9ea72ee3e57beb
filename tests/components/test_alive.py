"""The probe that says whether a conductor is to be started again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import alive


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A system that was booted at 1000; its first process began 50 seconds later, and has an odd name."""
    (tmp_path / "1").mkdir()
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1000\n")
    fields = ["S", *["0"] * 18, str(50 * os.sysconf("SC_CLK_TCK")), "0"]
    (tmp_path / "1/stat").write_text(f"1 (an ) odd one) {' '.join(fields)}\n")
    return tmp_path


def test_when_a_container_began(proc: Path) -> None:
    assert alive.conductor_started(proc) == 1050


@pytest.mark.parametrize(
    ("answers", "database", "status"),
    [
        (True, 900.0, 0),
        (True, 1054.0, 0),  # it began with the conductor
        (True, None, 0),  # it is away
        (True, 1100.0, 1),
        (False, 900.0, 1),
    ],
)
def test_what_is_started_again(
    monkeypatch: pytest.MonkeyPatch, *, answers: bool, database: float | None, status: int
) -> None:
    monkeypatch.setattr(alive, "answers", lambda port: answers)
    monkeypatch.setattr(alive, "conductor_started", lambda: 1050.0)
    monkeypatch.setattr(alive, "database_started", lambda secrets, ca: database)
    assert alive.main("6385", "/secrets.conf", "/ca.crt") == status


def test_an_api_that_does_not_listen_does_not_answer() -> None:
    assert not alive.answers(1)
