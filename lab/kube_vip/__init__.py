"""The real kube-vip, built from its Go module: a static pod of the lab's nodes, and what announces its hub's Services.

The checksum database does not know this module: go.sum beside this file is its pin.
"""

from __future__ import annotations

import re
from pathlib import Path

from binaries.go_tool import GoTool

PINS = Path(__file__).parent

KUBE_VIP = GoTool(
    program="kube-vip",
    package="github.com/kube-vip/kube-vip",
    pins=PINS,
    minutes="about 2 minutes",
)


def image() -> str:
    """The name of the image that this program stands for."""
    found = re.search(r"^\tgithub\.com/kube-vip/kube-vip (v\S+)", (PINS / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins kube-vip"
    return f"ghcr.io/kube-vip/kube-vip:{found[1]}"
