"""Cluster API's core controllers and clusterctl, on the lab's hub.

Both are built from the Go module that go.mod beside this file pins: its publisher offers no checksums. What is
installed is made by kustomize from the manifests of the same module, as its release is.

    providers     others that are given, and the image that is made of them
    components    the folder that clusterctl installs the core provider and cert-manager from
    control       installing them in a hub that runs
"""

from __future__ import annotations

import re
from pathlib import Path

from binaries.go_tool import GoTool

PINS = Path(__file__).parent
MODULE = "sigs.k8s.io/cluster-api"


def version() -> str:
    """The version that is pinned, e.g. `v1.12.2`."""
    found = re.search(rf"^\t{MODULE} (v\S+)", (PINS / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins Cluster API"
    return found[1]


def _tool(program: str, package: str, minutes: str) -> GoTool:
    major, minor = version().removeprefix("v").split(".")[:2]
    told = {"gitMajor": major, "gitMinor": minor, "gitVersion": version()}
    link = ("-s", "-w", *(f"-X {MODULE}/version.{name}={value}" for name, value in told.items()))
    return GoTool(program=program, package=package, pins=PINS, link=link, minutes=minutes)


MANAGER = _tool("cluster-api-controller", MODULE, "about 5 minutes")
"""The core controllers."""
CLUSTERCTL = _tool("clusterctl", f"{MODULE}/cmd/clusterctl", "about 2 minutes more")
KUSTOMIZE = GoTool(
    program="kustomize", package="sigs.k8s.io/kustomize/kustomize/v5", pins=PINS, minutes="less than a minute"
)
