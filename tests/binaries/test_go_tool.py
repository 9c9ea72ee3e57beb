"""Where a program that is built once per user is kept: its name follows everything that it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from binaries import go_tool
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
