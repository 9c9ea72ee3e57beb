"""Rancher's local-path-provisioner: makes volumes that are directories of a node. Built from its Go module.

kind and k3s use it, too. Its publisher offers images only, no programs.
"""

from __future__ import annotations

from pathlib import Path

from binaries.go_tool import GoTool

PINS = Path(__file__).parent

PROVISIONER = GoTool(
    program="local-path-provisioner",
    package="github.com/rancher/local-path-provisioner",
    pins=PINS,
    minutes="about a minute",
)
