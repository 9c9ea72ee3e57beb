"""kube-apiserver of the version that the go.mod beside this file pins: on PATH, downloaded, or built once per user."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from binaries.cache import Report
from binaries.go_tool import GoTool
from binaries.program import Program
from binaries.release import Release, architecture
from lab.errors import SetupFailed

PROGRAM = "kube-apiserver"

_HERE = Path(__file__).parent
_RELEASES = "https://dl.k8s.io"
_VERSION_PACKAGE = "k8s.io/component-base/version"


def version(module: str) -> str:
    """The version of Kubernetes that a go.mod pins, e.g. `1.33.1`. Raises SetupFailed."""
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes v(\d+\.\d+\.\d+)\b", module, re.MULTILINE)
    if found is None:
        raise SetupFailed("lab/kubernetes/go.mod does not pin k8s.io/kubernetes: restore it from version control")
    return found[1]


def pinned() -> str:
    """The version that the go.mod beside this file pins."""
    return version((_HERE / "go.mod").read_text())


def cached() -> Path | None:
    """The program, if it is there already."""
    return _on_path() or _program().cached()


def ensure(report: Report) -> Path:
    """The program, downloaded or built if need be. Raises ProgramMissing."""
    return _on_path() or _program().ensure(report)


def _on_path() -> Path | None:
    """The program on PATH, if it is of the version that is pinned."""
    found = shutil.which(PROGRAM)
    if found is None:
        return None
    try:
        done = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(found) if done.stdout.split() == ["Kubernetes", f"v{pinned()}"] else None


def _program() -> Program:
    number = pinned()
    major, minor, _ = number.split(".")
    stamps = {"gitVersion": f"v{number}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    machine = architecture("amd64", "arm64")
    url = f"{_RELEASES}/v{number}/bin/linux/{machine}/{PROGRAM}"
    return Program(
        name=PROGRAM,
        version=number,
        release=Release(url=url, sums=f"{url}.sha256") if machine is not None else None,
        builder=GoTool(
            program=PROGRAM,
            package="k8s.io/kubernetes/cmd/kube-apiserver",
            pins=_HERE,
            link=("-s", "-w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())),
            minutes="about 3 minutes",
        ),
    )
