"""Where a program that is built once per user is kept: its name follows everything that it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from binaries import go_tool, golang
from binaries.errors import ProgramMissing
from binaries.go_tool import GoTool
from binaries.golang import find_go


def _program(pins: Path, package: str) -> Path:
    """Where it is; as if it were built."""
    tool = GoTool(program="x", package=package, pins=pins, minutes="seconds")
    return tool._path(find_go())  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        find_go()
    except ProgramMissing as error:
        pytest.skip(str(error))
    monkeypatch.setattr(go_tool, "cache_directory", lambda: tmp_path / "cache")
    folder = tmp_path / "pins"
    (folder / "ours").mkdir(parents=True)
    for name in ("go.mod", "go.sum", "ours/main.go"):
        (folder / name).write_text(name)
    return folder


def test_a_package_of_ours_is_built_anew_when_its_source_changes(pins: Path) -> None:
    before, other = _program(pins, "./ours"), _program(pins, "example.test/module/cmd/x")
    (pins / "ours/main.go").write_text("package main")
    assert _program(pins, "./ours") != before
    assert _program(pins, "example.test/module/cmd/x") == other, "what is not part of it does not count"


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_every_package_is_built_anew_when_its_pins_change(pins: Path, name: str) -> None:
    packages = ("./ours", "example.test/module/cmd/x")
    before = [_program(pins, package) for package in packages]
    (pins / name).write_text("changed")
    assert not set(before) & {_program(pins, package) for package in packages}


@pytest.mark.parametrize(("found", "taken"), [("1.25.0", "bin/go"), ("1.19.8", "")], ids=["new enough", "too old"])
def test_go_is_taken_from_the_path_unless_it_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str, taken: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for path, version in ((tmp_path / "bin/go", found), (golang.cached(), "1.26.6")):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
        path.chmod(0o755)
    assert find_go() == (tmp_path / taken if taken else golang.cached())
