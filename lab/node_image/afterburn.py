"""The real Afterburn, built with cargo where there is one: Debian has no package of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.layout import cache_dir
from lab.node_image.packages import run

VERSION = "5.11.0"


@dataclass(frozen=True)
class Afterburn:
    """A built Afterburn and the systemd units of its source."""

    binary: Path
    units: tuple[Path, ...]


def cargo() -> str | None:
    """The cargo on PATH, or where rustup puts it."""
    return shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")


def to_build() -> bool:
    """Whether it can be built here, and is not in the cache yet."""
    return cargo() is not None and not (_directory() / "units").exists()


def _directory() -> Path:
    return cache_dir() / "afterburn" / VERSION


def ensure() -> Afterburn | None:
    """Afterburn from the cache, built first if need be (3 minutes); None where there is no cargo."""
    directory = _directory()
    binary = directory / "bin" / "afterburn"
    units = directory / "units"
    if not units.exists():
        program = cargo()
        if program is None:
            return None
        _build(program, directory, units)
    return Afterburn(binary, tuple(sorted(units.iterdir())))


def _build(program: str, directory: Path, units: Path) -> None:
    """Build with cargo, without debugging information: it would be five sixths of the program."""
    run(
        *(program, "install", "afterburn", "--version", VERSION, "--locked", "--force", "--root", directory),
        *("--config", "profile.release.debug=0", "--config", "profile.release.strip=true"),
        *("--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"),
    )
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    (source,) = home.glob(f"registry/src/*/afterburn-{VERSION}/systemd")
    fresh = directory / "units.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for unit in source.glob("*.service"):
        shutil.copy(unit, fresh)
    fresh.rename(units)
