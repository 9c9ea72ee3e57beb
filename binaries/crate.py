"""Programs that are built from crates with cargo, once per user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import Report, alone, cache_directory, is_program, telling_time
from binaries.errors import ProgramMissing

_LINES_TOLD = 8


@dataclass(frozen=True, kw_only=True)
class Crate:
    """A crate of one program that has its name."""

    name: str
    version: str
    features: Sequence[str] = ()
    """Which of its features are built; empty: its default ones."""

    @property
    def directory(self) -> Path:
        """What is made of this version is below."""
        return cache_directory() / self.name / self.version

    def cached(self) -> Path | None:
        """The program, if it is built already."""
        path = self.directory / "bin" / self.name
        return path if is_program(path) else None

    def ensure(self, report: Report) -> Path:
        """The program, built if need be (minutes). Raises ProgramMissing."""
        with alone(self.directory.parent / "lock", self.name, report):
            return self.cached() or self._build(report)

    def sources(self) -> list[Path]:
        """Where cargo keeps the crate's source, once it has built it."""
        home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
        return sorted(home.glob(f"registry/src/*/{self.name}-{self.version}"))

    def _build(self, report: Report) -> Path:
        """Without debugging information: it would be five sixths of the program."""
        program = cargo()
        if program is None:
            raise ProgramMissing(
                f"{self.name} {self.version} is built with cargo, which is not on PATH (https://rustup.rs)"
            )
        report(f"building {self.name} {self.version} with cargo (once, minutes) ...")
        command = [program, "install", self.name, "--version", self.version, "--locked", "--force"]
        command += ["--root", str(self.directory)]
        for setting in ("debug=0", "strip=true", "lto=false", "codegen-units=16"):
            command += ["--config", f"profile.release.{setting}"]
        if self.features:
            command += ["--no-default-features", "--features", ",".join(self.features)]
        with telling_time(report):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        found = self.cached()
        if done.returncode != 0 or found is None:
            last = "\n".join(done.stdout.strip().splitlines()[-_LINES_TOLD:])
            raise ProgramMissing(
                f"building {self.name} with cargo failed; it needs a C compiler and crates.io:\n{last}"
            )
        return found


NMSTATECTL = Crate(name="nmstatectl", version="2.2.62", features=("gen_conf",))
"""Makes NetworkManager's keyfiles of NMState (`nmstatectl gc`), and can do nothing else."""


def cargo() -> str | None:
    """The cargo on PATH, or where rustup puts it."""
    return shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
