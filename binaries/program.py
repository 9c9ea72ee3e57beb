"""One program: from the cache, else downloaded from its publisher, else built."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from binaries.cache import Report, alone, cache_directory, is_program
from binaries.errors import DownloadFailed, WrongChecksum
from binaries.release import Release


def told(program: Path, ask: str = "--version") -> str:
    """What a program says of its version; empty if it does not run."""
    try:
        return subprocess.run([program, ask], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def on_path(name: str, fits: Callable[[str], bool]) -> Path | None:
    """The program on PATH, if what it says of its version fits."""
    found = shutil.which(name)
    return Path(found) if found is not None and fits(told(Path(found))) else None


class Builder(Protocol):
    """What makes a program here; a GoTool does."""

    def cached(self) -> Path | None:
        """The program, if it was made before."""
        ...

    def ensure(self, report: Report) -> Path:
        """The program, made if need be. Raises ProgramMissing."""
        ...


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of one version."""

    name: str
    """Its file name."""
    version: str
    """The version that is downloaded, e.g. `1.33.1`."""
    release: Release | None
    """What its publisher offers for this machine; None: nothing."""
    builder: Builder | None
    """Who makes it where it cannot be downloaded; None: nobody."""

    def cached(self) -> Path | None:
        """The program, if it was downloaded or built before."""
        if is_program(self._downloaded):
            return self._downloaded
        return self.builder.cached() if self.builder is not None else None

    def ensure(self, report: Report) -> Path:
        """The program; one process at a time downloads or builds it. Raises ProgramMissing."""
        found = self.cached()
        if found is not None:
            return found
        with alone(cache_directory() / self.name / "lock", self.name, report):
            return self.cached() or self._make(report)

    def _make(self, report: Report) -> Path:
        from binaries import publisher  # its HTTP client is slow to load, and most runs download nothing

        try:
            if self.release is None:
                raise DownloadFailed(f"its publisher has no build for {platform.machine()}")
            publisher.fetch(self.release, self._downloaded, report)
        except DownloadFailed as error:
            if self.builder is None:
                raise
            if isinstance(error, WrongChecksum):
                report(f"error: {error}")
                report(f"{self.name} {self.version} is built instead")
            else:
                report(f"{self.name} {self.version} is built, because it cannot be downloaded: {error}")
            return self.builder.ensure(report)
        return self._downloaded

    @property
    def _downloaded(self) -> Path:
        return cache_directory() / self.name / f"{self.version}-{platform.machine()}" / self.name
