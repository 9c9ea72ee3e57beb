"""Set-up: what is announced, what is installed, and which machines a system can have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from binaries import golang
from lab import setup
from lab.errors import SetupFailed


class Apt:
    """Stands in for running programs; records them, and answers with one status."""

    def __init__(self, status: int = 0) -> None:
        self.calls: list[list[str]] = []
        self._status = status

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        return subprocess.CompletedProcess(command, self._status, stdout="", stderr="E: no such package\n")


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> Apt:
    recorder = Apt()
    monkeypatch.setattr(setup.subprocess, "run", recorder)
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    monkeypatch.setattr(setup.shutil, "which", lambda program, **_: f"/usr/bin/{program}")  # pyright: ignore[reportUnknownLambdaType]
    return recorder


def test_only_what_is_missing_is_installed_and_said_before(apt: Apt, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    packages = [setup.Package("present", str(tmp_path / "there")), setup.Package("absent", str(tmp_path / "gone"))]
    said: list[str] = []
    setup.install(setup.missing(packages), lambda line: said.append(f"{len(apt.calls)}: {line}"))
    assert said == ["0: installing on this system, with apt-get: absent"]
    assert apt.calls[-1][-2:] == ["--no-install-recommends", "absent"]
    assert [call[2:4] for call in apt.calls] == [["apt-get", "update"], ["apt-get", "install"]]


def test_nothing_missing_runs_nothing(apt: Apt) -> None:
    said: list[str] = []
    setup.install([], said.append)
    assert (apt.calls, said) == ([], ["no system package is missing"])


def test_a_failed_installation_shows_what_apt_said(monkeypatch: pytest.MonkeyPatch, apt: Apt) -> None:
    monkeypatch.setattr(setup.subprocess, "run", Apt(100))
    with pytest.raises(SetupFailed, match=r"(?s)ended with 100.*no such package"):
        setup.install([setup.Package("absent", "/nonexistent")], lambda _: None)


def test_without_root_the_lab_goes_on_with_simulated_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000)
    said: list[str] = []
    assert setup.settle("libvirt", said.append) == "simulated"
    (line,) = said
    assert "root" in line
    assert "simulated" in line


def test_without_a_hypervisor_it_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, apt: Apt) -> None:
    monkeypatch.setattr(setup, "MACHINES", (setup.Package("qemu-system-x86", "/nonexistent"),))
    said: list[str] = []
    assert setup.settle("libvirt", said.append) == "simulated"
    assert "qemu-system-x86" in said[0]


def test_simulated_machines_need_no_decision() -> None:
    said: list[str] = []
    assert setup.settle("simulated", said.append) == "simulated"
    assert said == []


def _fake_go(directory: Path, version: str) -> None:
    directory.mkdir(parents=True)
    (directory / "go").write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
    (directory / "go").chmod(0o755)


def test_go_comes_from_the_path_when_it_is_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_go(tmp_path / "bin", "1.25.0")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert golang.find_go() == tmp_path / "bin" / "go"


def test_an_old_go_is_passed_over_for_the_cached_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_go(tmp_path / "old", "1.19.8")
    monkeypatch.setenv("PATH", f"{tmp_path}/old:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = golang.cached()
    _fake_go(cached.parent, "1.26.6")
    assert golang.find_go() == cached
