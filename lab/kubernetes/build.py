"""Build kube-apiserver once per user: a cache keyed by its pins and the Go that compiles it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from lab.errors import SetupFailed
from lab.golang import find_go
from lab.layout import cache_dir

Report = Callable[[str], None]

PROGRAM = "kube-apiserver"
PACKAGE = "k8s.io/kubernetes/cmd/kube-apiserver"
RECIPE = "1: CGO_ENABLED=0 -trimpath -s -w, version stamped"
"""How it is built; part of the cache key."""

_HERE = Path(__file__).parent
_VERSION_PACKAGE = "k8s.io/component-base/version"
_TELL_EVERY_SECONDS = 15.0
_LINES_TOLD = 8


def version(module: str) -> str:
    """The version of Kubernetes that a go.mod pins, e.g. `1.33.1`. Raises SetupFailed."""
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes v(\d+\.\d+\.\d+)\b", module, re.MULTILINE)
    if found is None:
        raise SetupFailed("lab/kubernetes/go.mod does not pin k8s.io/kubernetes: restore it from version control")
    return found[1]


def cached() -> Path | None:
    """The program, if it is built already. Raises SetupFailed where there is no Go."""
    path = _path(find_go())
    return path if os.access(path, os.X_OK) else None


def ensure(report: Report) -> Path:
    """The program, built if need be: three minutes on two cores. Raises SetupFailed."""
    go = find_go()
    path = _path(go)
    if os.access(path, os.X_OK):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.parent.with_suffix(".lock"), report):
        if not os.access(path, os.X_OK):
            _build(go, path, report)
    return path


@contextlib.contextmanager
def _alone(lock: Path, report: Report) -> Generator[None]:
    """Only one set-up at a time builds; the others wait and then find its result."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another set-up that is building {PROGRAM} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(go: Path, target: Path, report: Report) -> None:
    number = version((_HERE / "go.mod").read_text())
    major, minor, _ = number.split(".")
    stamps = {"gitVersion": f"v{number}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    flags = ["-s", "-w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())]
    report(f"building {PROGRAM} {number} from Go modules (once, about 3 minutes) ...")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as directory:
        fresh = Path(directory) / PROGRAM
        _run([str(go), "build", "-trimpath", "-ldflags", " ".join(flags), "-o", str(fresh), PACKAGE], report)
        fresh.rename(target)
    report(f"built {PROGRAM} in {time.monotonic() - started:.0f} s: {target}")


def _run(command: list[str], report: Report) -> None:
    """Run it; say now and then that it still runs, and raise SetupFailed with its last lines if it fails."""
    done = threading.Event()
    started = time.monotonic()

    def keep_saying() -> None:
        while not done.wait(_TELL_EVERY_SECONDS):
            report(f"  ... {time.monotonic() - started:.0f} s")

    ticker = threading.Thread(target=keep_saying, daemon=True)
    ticker.start()
    try:
        result = subprocess.run(
            command,
            cwd=_HERE,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    finally:
        done.set()
        ticker.join()
    if result.returncode != 0:
        last = "\n".join(result.stdout.strip().splitlines()[-_LINES_TOLD:])
        raise SetupFailed(
            f"building {PROGRAM} failed; see whether the Go module proxy can be reached (`go env GOPROXY`):\n{last}"
        )


def _environment() -> dict[str, str]:
    flags = "-mod=readonly -buildvcs=false"
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _path(go: Path) -> Path:
    return cache_dir() / PROGRAM / _key(go) / PROGRAM


def _key(go: Path) -> str:
    """What the build depends on: the pins, the recipe, and the version of Go."""
    try:
        told = subprocess.run([str(go), "version"], cwd=_HERE, env=_environment(), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupFailed(f"{go} does not run: {error}") from error
    digest = hashlib.sha256()
    for part in (told.stdout, RECIPE.encode(), (_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:20]
