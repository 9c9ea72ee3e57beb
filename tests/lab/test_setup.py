"""What set-up does to the system, with commands that only write down that they were called."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab import setup
from lab.errors import SetupFailed
from lab.setup import Package

KNOT = Package("knot", "/nonexistent/knotd", "knot.service")
PLAIN = Package("iproute2", "/nonexistent/ip")


class Commands:
    """Takes the place of subprocess.run."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.failing = ""

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        text = " ".join(command)
        self.called.append(text.removeprefix("env DEBIAN_FRONTEND=noninteractive "))
        status = 100 if self.failing and self.failing in text else 0
        return subprocess.CompletedProcess(command, status, "", "E: told to")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    """Root on a Debian with systemd."""
    commands = Commands()
    monkeypatch.setattr(setup.subprocess, "run", commands)
    monkeypatch.setattr(setup, "_privilege", list[str])
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(setup, "_SYSTEMD", tmp_path)
    return commands


def test_what_is_installed_is_said_first_and_does_not_stay_running(commands: Commands) -> None:
    said: list[str] = []
    setup.install([KNOT, PLAIN], said.append)
    assert said == [
        "installing on this system, with apt-get: knot iproute2",
        "stopping and disabling what came with it: knot.service",
    ]
    assert commands.called == [
        "apt-get update --quiet=2",
        "apt-get install --quiet=2 --yes --no-install-recommends knot iproute2",
        "systemctl disable --now knot.service",
    ]


def test_services_that_were_there_before_are_nobodys_business(commands: Commands) -> None:
    setup.install([PLAIN], print)
    assert not any("systemctl" in call for call in commands.called)


def test_without_systemd_nothing_was_started(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_SYSTEMD", Path("/nonexistent"))
    setup.install([KNOT], print)
    assert not any("systemctl" in call for call in commands.called)


def test_a_service_that_goes_on_is_told(commands: Commands) -> None:
    commands.failing = "systemctl"
    said: list[str] = []
    setup.install([KNOT], said.append)
    assert said[-1] == "  it did not work, see to it yourself: E: told to"


def test_an_installation_that_fails_is_an_error_with_its_last_words(commands: Commands) -> None:
    commands.failing = "install"
    with pytest.raises(SetupFailed, match=r"`apt-get install .* ended with 100:\nE: told to"):
        setup.install([KNOT], print)
