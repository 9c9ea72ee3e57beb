"""Programs that the lab builds from Go modules, once per user: a cache keyed by pins and the Go that compiles them.

A folder with a go.mod and a go.sum pins a program; nothing else of it is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import golang
from lab.errors import SetupFailed
from lab.layout import cache_dir

Report = Callable[[str], None]

_RECIPE = "CGO_ENABLED=0 -trimpath"
_TELL_EVERY_SECONDS = 15.0
_LINES_TOLD = 8


def download(module: str, folder: Path) -> dict[str, str]:
    """Has Go download a module (`path`, or `path@version`); what it told of it: `Dir`, `Sum`...

    `folder` is where it runs: one with a go.mod pins what a bare path means, and its go.sum checks it. Raises
    SetupFailed.
    """
    command = [str(golang.find_go()), "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=folder, env=golang.environment(), capture_output=True, text=True, check=False)
    try:
        told: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        told = {}
    if done.returncode != 0 or "Dir" not in told:
        why = told.get("Error") or done.stderr.strip() or f"go ended with {done.returncode}"
        raise SetupFailed(f"{module} cannot be downloaded; see whether the Go module proxy can be reached: {why}")
    return told


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

    def cached(self) -> Path | None:
        """The program, if it is built already. Raises SetupFailed where there is no Go."""
        path = self._path(golang.find_go())
        return path if os.access(path, os.X_OK) else None

    def ensure(self, report: Report) -> Path:
        """The program, built if need be. Raises SetupFailed."""
        go = golang.find_go()
        path = self._path(go)
        if os.access(path, os.X_OK):
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent.with_suffix(".lock"), self.program, report):
            if not os.access(path, os.X_OK):
                self._build(go, path, report)
        return path

    def source(self, module: str) -> Path:
        """The directory of one of the modules that are pinned, checked by go.sum. Raises SetupFailed."""
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
        """Run it; say now and then that it still runs, and raise SetupFailed with its last lines if it fails."""
        with _saying_that_it_runs(report):
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
            raise SetupFailed(
                f"building {self.program} failed;"
                f" see whether the Go module proxy can be reached (`go env GOPROXY`):\n{last}"
            )

    def _path(self, go: Path) -> Path:
        digest = hashlib.sha256(golang.version(go))
        for part in (self.package, _RECIPE, *self.link, *self.tags):
            digest.update(f"{part}\n".encode())
        ours = (self.pins / self.package).glob("*.go") if self.package.startswith("./") else ()
        for path in (self.pins / "go.mod", self.pins / "go.sum", *sorted(ours)):
            digest.update(path.read_bytes())
        return cache_dir() / self.program / digest.hexdigest()[:20] / self.program


@contextlib.contextmanager
def _alone(lock: Path, program: str, report: Report) -> Generator[None]:
    """Only one set-up at a time builds; the others wait and then find its result."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another set-up that is building {program} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _saying_that_it_runs(report: Report) -> Generator[None]:
    done = threading.Event()
    started = time.monotonic()

    def keep_saying() -> None:
        while not done.wait(_TELL_EVERY_SECONDS):
            report(f"  ... {time.monotonic() - started:.0f} s")

    ticker = threading.Thread(target=keep_saying, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
