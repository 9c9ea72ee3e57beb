"""Kubernetes' programs of the version that go.mod beside this file pins: on PATH, downloaded, or built once."""

from __future__ import annotations

import re
from pathlib import Path

from binaries.cache import Report
from binaries.go_tool import GoTool
from binaries.program import Program, on_path
from binaries.release import Release, architecture
from lab.errors import SetupFailed

APISERVER = "kube-apiserver"

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


def cached(name: str = APISERVER) -> Path | None:
    """The program, if it is there already."""
    return _on_path(name) or _program(name).cached()


def ensure(report: Report, name: str = APISERVER) -> Path:
    """The program, downloaded or built if need be. Raises ProgramMissing."""
    return _on_path(name) or _program(name).ensure(report)


def _on_path(name: str) -> Path | None:
    return on_path(name, lambda told: told.split() == ["Kubernetes", f"v{pinned()}"])


def _program(name: str) -> Program:
    number = pinned()
    major, minor, _ = number.split(".")
    stamps = {"gitVersion": f"v{number}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    machine = architecture("amd64", "arm64")
    url = f"{_RELEASES}/v{number}/bin/linux/{machine}/{name}"
    return Program(
        name=name,
        version=number,
        release=Release(url=url, sums=f"{url}.sha256") if machine is not None else None,
        builder=GoTool(
            program=name,
            package=f"k8s.io/kubernetes/cmd/{name}",
            pins=_HERE,
            link=("-s", "-w", *(f"-X {_VERSION_PACKAGE}.{stamp}={value}" for stamp, value in stamps.items())),
            minutes="about 3 minutes",
        ),
    )
