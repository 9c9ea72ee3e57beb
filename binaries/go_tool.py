"""Programs that are built from Go modules, once per user: a cache keyed by pins and the Go that compiles them.

A folder with a go.mod and a go.sum pins a program; nothing else of it is needed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from binaries import golang
from binaries.cache import Report, alone, cache_directory, is_program, telling_time
from binaries.errors import ProgramMissing

_RECIPE = "CGO_ENABLED=0 -trimpath"
_LINES_TOLD = 8


def download(module: str, folder: Path) -> dict[str, str]:
    """Has Go download a module (`path`, or `path@version`); returns what Go says of it: `Dir`, `Sum`...

    `folder` is where it runs: one with a go.mod pins what a bare path means, and its go.sum checks it. Raises
    ProgramMissing.
    """
    command = [str(golang.find_go()), "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=folder, env=golang.environment(), capture_output=True, text=True, check=False)
    try:
        answer: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode != 0 or "Dir" not in answer:
        why = answer.get("Error") or done.stderr.strip() or f"go ended with {done.returncode}"
        raise ProgramMissing(f"{module} cannot be downloaded; check that the Go module proxy can be reached: {why}")
    return answer


@dataclass(frozen=True, kw_only=True)
class GoTool:
    """A program, and where it is pinned."""

    program: str
    """Its file name."""
    package: str
    """What is compiled: a package of a module that is pinned, or one of ours in a folder beside the pins (`./name`)."""
    pins: Path
    """The folder of go.mod and go.sum."""
    link: Sequence[str] = ("-s", "-w")
    """Flags for the linker; part of the cache key."""
    tags: Sequence[str] = ()
    """Build tags; part of the cache key."""
    minutes: str
    """How long the build takes on two cores, in words."""
    place: Path | None = None
    """The file that it becomes; None: a file in the cache whose name depends on Go's version and everything above."""

    def cached(self) -> Path | None:
        """The program, if it is built already. Where it depends on Go's version, there must be a Go."""
        path = self.place
        if path is None and (go := golang.present(self._minimum())) is not None:
            path = self._path(go)
        return path if path is not None and is_program(path) else None

    def ensure(self, report: Report) -> Path:
        """The program, built if need be. Raises ProgramMissing."""
        if self.place is not None and is_program(self.place):
            return self.place
        go = golang.find_go(self._minimum())
        path = self.place or self._path(go)
        if is_program(path):
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone(path.parent.with_suffix(".lock"), self.program, report):
            if not is_program(path):
                self._build(go, path, report)
        return path

    def source(self, module: str) -> Path:
        """The directory of one of the modules that are pinned, checked by go.sum. Raises ProgramMissing."""
        return Path(download(module, self.pins)["Dir"])

    def _build(self, go: Path, target: Path, report: Report) -> None:
        report(f"building {self.program} from Go modules (once, {self.minutes}) ...")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as directory:
            fresh = Path(directory) / self.program
            command = [str(go), "build", "-trimpath", "-tags", ",".join(self.tags), "-ldflags", " ".join(self.link)]
            self._run([*command, "-o", str(fresh), self.package], report)
            fresh.rename(target)
        report(f"built {self.program} in {time.monotonic() - started:.0f} s: {target}")

    def _run(self, command: list[str], report: Report) -> None:
        """Run it; say now and then that it still runs, and raise ProgramMissing with its last lines if it fails."""
        with telling_time(report):
            result = subprocess.run(
                command,
                cwd=self.pins,
                env=golang.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        if result.returncode != 0:
            last = "\n".join(result.stdout.strip().splitlines()[-_LINES_TOLD:])
            raise ProgramMissing(
                f"building {self.program} failed; check that the Go module proxy can be reached (`go env "
                f"GOPROXY`):\n{last}"
            )

    def _minimum(self) -> golang.Version:
        """The oldest Go that builds it."""
        found = re.search(r"^go (\S+)$", (self.pins / "go.mod").read_text(), re.MULTILINE)
        return max(golang.MINIMUM, golang.parse(found[1])) if found else golang.MINIMUM

    def _path(self, go: Path) -> Path:
        digest = hashlib.sha256(golang.version(go))
        for part in (self.package, _RECIPE, *self.link, *self.tags):
            digest.update(f"{part}\n".encode())
        ours = (self.pins / self.package).glob("*.go") if self.package.startswith("./") else ()
        for path in (self.pins / "go.mod", self.pins / "go.sum", *sorted(ours)):
            digest.update(path.read_bytes())
        return cache_directory() / self.program / digest.hexdigest()[:20] / self.program
