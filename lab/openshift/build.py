"""Build the stand-in once per user: a cache keyed by its sources and the Go that compiles them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from binaries import golang
from binaries.cache import cache_directory, filling
from lab.errors import SetupFailed

PROGRAM = "lab-openshift"
INSTALLER = "openshift-install"

SOURCES = Path(__file__).parent
"""What the stand-in is built from."""


def ensure() -> Path:
    """The node services' program, `lab-openshift`, built if need be; `openshift-install` is a link beside it.

    It is one static binary, so the same file serves this machine and the node image. Raises SetupFailed or
    ProgramMissing.
    """
    go = golang.find_go()
    finished = cache_directory() / "lab-openshift" / _key(go)
    program = finished / PROGRAM
    if program.exists():
        return program
    with filling(finished) as fresh:
        _compile(go, fresh / PROGRAM)
        (fresh / INSTALLER).symlink_to(PROGRAM)
    return program


def installer() -> Path:
    """The stand-in for openshift-install, built if need be. Raises SetupFailed or ProgramMissing."""
    return ensure().with_name(INSTALLER)


def _compile(go: Path, target: Path) -> None:
    command = [str(go), "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target)]
    result = subprocess.run(
        [*command, "./cmd/lab-openshift"],
        cwd=SOURCES,
        env=golang.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SetupFailed(f"building the lab's OpenShift stand-in failed:\n{result.stdout.strip()}")


def _key(go: Path) -> str:
    """What the build depends on: the sources without their tests, and the version of Go."""
    digest = hashlib.sha256(golang.version(go))
    sources = [SOURCES / "go.mod", SOURCES / "go.sum", *SOURCES.rglob("*.go")]
    for path in sorted(path for path in sources if not path.name.endswith("_test.go")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(SOURCES)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:20]
