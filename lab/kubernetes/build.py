"""kube-apiserver, built once per user from the go.mod beside this file."""

from __future__ import annotations

import re
from pathlib import Path

from lab.errors import SetupFailed
from lab.go_tool import GoTool, Report

PROGRAM = "kube-apiserver"

_HERE = Path(__file__).parent
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
    """The program, if it is built already. Raises SetupFailed where there is no Go."""
    return _tool().cached()


def ensure(report: Report) -> Path:
    """The program, built if need be. Raises SetupFailed."""
    return _tool().ensure(report)


def _tool() -> GoTool:
    number = pinned()
    major, minor, _ = number.split(".")
    stamps = {"gitVersion": f"v{number}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    return GoTool(
        program=PROGRAM,
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        pins=_HERE,
        link=("-s", "-w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())),
        minutes="about 3 minutes",
    )
