"""What set-up does to the system, with commands that only write down their calls, and which machines it allows."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab import metallb, setup
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
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(setup, "_SYSTEMD", tmp_path)
    return commands


def test_only_what_is_missing_is_installed_after_it_was_said_and_does_not_stay_running(commands: Commands) -> None:
    said: list[str] = []
    packages = setup.missing([KNOT, Package("present", __file__), PLAIN])
    setup.install(packages, lambda line: said.append(f"{len(commands.called)}: {line}"))
    assert said == [
        "0: installing on this system, with apt-get: knot iproute2",
        "2: stopping and disabling what came with it: knot.service",
    ]
    assert commands.called == [
        "apt-get update --quiet=2",
        "apt-get install --quiet=2 --yes --no-install-recommends knot iproute2",
        "systemctl disable --now knot.service",
    ]


def test_nothing_missing_runs_nothing(commands: Commands) -> None:
    said: list[str] = []
    setup.install([], said.append)
    assert (commands.called, said) == ([], ["no system package is missing"])


@pytest.mark.parametrize(("package", "systemd"), [(PLAIN, "."), (KNOT, "/nonexistent")])
def test_services_that_were_there_before_or_did_not_start_are_left_alone(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, package: Package, systemd: str
) -> None:
    monkeypatch.setattr(setup, "_SYSTEMD", Path(systemd))
    setup.install([package], print)
    assert [call.split()[0] for call in commands.called] == ["apt-get", "apt-get"]


def test_a_service_that_goes_on_is_told(commands: Commands) -> None:
    commands.failing = "systemctl"
    said: list[str] = []
    setup.install([KNOT], said.append)
    assert said[-1] == "  it did not work, see to it yourself: E: told to"


def test_an_installation_that_fails_is_an_error_with_its_last_words(commands: Commands) -> None:
    commands.failing = "install"
    with pytest.raises(SetupFailed, match=r"`apt-get install .* ended with 100:\nE: told to"):
        setup.install([KNOT], print)


@pytest.mark.parametrize(
    ("user", "allowed"), [(0, ["apt-get"]), (0, []), (1000, ["sudo"]), (1000, ["apt-get"]), (1000, ["apt-get", "sudo"])]
)
def test_without_root_or_apt_what_is_missing_is_named(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, user: int, allowed: list[str]
) -> None:
    monkeypatch.setattr(setup.os, "geteuid", lambda: user)
    monkeypatch.setattr(setup.shutil, "which", lambda name: name if name in allowed else None)
    said: list[str] = []
    setup.install([PLAIN], said.append)
    installed = any("apt-get install" in call for call in commands.called)
    assert installed == ("apt-get" in allowed and (user == 0 or "sudo" in allowed))
    assert installed or said == ["not installed, for that takes apt-get and root: iproute2"]


def test_where_libvirt_cannot_run_the_lab_goes_on_with_simulated_machines(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(setup, "MACHINES", (Package("qemu-system-x86", "/nonexistent"),))
    assert setup.settle("libvirt", said.append) == "simulated"
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000)
    assert setup.settle("libvirt", said.append) == "simulated"
    assert "qemu-system-x86" in said[0] and "root" in said[1] and all("simulated" in line for line in said)
    assert setup.settle("simulated", said.append) == "simulated" and len(said) == 2


def test_what_announces_addresses_is_installed_and_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed: list[str] = []
    monkeypatch.setattr(setup, "missing", list[Package])
    monkeypatch.setattr(setup, "install", lambda packages, _: installed.extend(each.name for each in packages))
    monkeypatch.setattr(metallb, "ensure", lambda _: tmp_path)
    assert (setup.announcing(print), installed) == (tmp_path, ["nftables"])
