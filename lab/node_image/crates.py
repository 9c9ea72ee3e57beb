"""Programs of CoreOS that Debian has no package of, built from their crates with cargo where there is one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from binaries import crate


@dataclass(frozen=True)
class Built:
    """A built program and the systemd units of its source."""

    binary: Path
    units: tuple[Path, ...]


@dataclass(frozen=True)
class WithUnits:
    """A crate whose source has systemd units."""

    crate: crate.Crate

    def to_build(self) -> bool:
        """Whether it can be built here, and is not in the cache yet."""
        return crate.cargo() is not None and not self._units.exists()

    def ensure(self) -> Built | None:
        """The program from the cache, built first if need be (3 minutes); None where there is no cargo. Raises
        ProgramMissing."""
        if not self._units.exists() and crate.cargo() is None:
            return None
        binary = self.crate.ensure(lambda _: None)
        if not self._units.exists():
            (source,) = self.crate.sources()
            fresh = self._units.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            for unit in source.glob("systemd/*.service"):
                shutil.copy(unit, fresh)
            fresh.rename(self._units)
        return Built(binary, tuple(sorted(self._units.iterdir())))

    @property
    def _units(self) -> Path:
        """The last thing that is made: where it is, everything is."""
        return self.crate.directory / "units"


AFTERBURN = WithUnits(crate.Crate(name="afterburn", version="5.11.0"))
INSTALLER = WithUnits(crate.Crate(name="coreos-installer", version="0.24.0"))
