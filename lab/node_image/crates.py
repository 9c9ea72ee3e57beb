"""Programs of CoreOS that Debian has no package of, built from their crates with cargo where there is one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import cache_directory
from lab.node_image.packages import run


@dataclass(frozen=True)
class Built:
    """A built program and the systemd units of its source."""

    binary: Path
    units: tuple[Path, ...]


@dataclass(frozen=True)
class Crate:
    """A crate of one program that has its name."""

    name: str
    version: str

    def to_build(self) -> bool:
        """Whether it can be built here, and is not in the cache yet."""
        return cargo() is not None and not self._units.exists()

    def ensure(self) -> Built | None:
        """The program from the cache, built first if need be (3 minutes); None where there is no cargo."""
        if not self._units.exists():
            program = cargo()
            if program is None:
                return None
            self._build(program)
        return Built(self._directory / "bin" / self.name, tuple(sorted(self._units.iterdir())))

    @property
    def _directory(self) -> Path:
        return cache_directory() / self.name / self.version

    @property
    def _units(self) -> Path:
        """The last thing that a build makes: where it is, everything is."""
        return self._directory / "units"

    def _build(self, program: str) -> None:
        """Build with cargo, without debugging information: it would be five sixths of the program."""
        run(
            *(program, "install", self.name, "--version", self.version, "--locked", "--force"),
            *("--root", self._directory),
            *("--config", "profile.release.debug=0", "--config", "profile.release.strip=true"),
            *("--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"),
        )
        home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
        (source,) = home.glob(f"registry/src/*/{self.name}-{self.version}/systemd")
        fresh = self._directory / "units.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        for unit in source.glob("*.service"):
            shutil.copy(unit, fresh)
        fresh.rename(self._units)


AFTERBURN = Crate("afterburn", "5.11.0")
INSTALLER = Crate("coreos-installer", "0.24.0")


def cargo() -> str | None:
    """The cargo on PATH, or where rustup puts it."""
    return shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
