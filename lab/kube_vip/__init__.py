"""The real kube-vip, built from its Go module, for the lab's nodes to run as a static pod.

The checksum database does not know this module: go.sum beside this file is its pin.
"""

from __future__ import annotations

import re
from pathlib import Path

from binaries.go_tool import GoTool

_HERE = Path(__file__).parent

KUBE_VIP = GoTool(
    program="kube-vip",
    package="github.com/kube-vip/kube-vip",
    pins=_HERE,
    minutes="about 2 minutes",
)


def image() -> str:
    """The name of the image that this program stands for."""
    found = re.search(r"^\tgithub\.com/kube-vip/kube-vip (v\S+)", (_HERE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins kube-vip"
    return f"ghcr.io/kube-vip/kube-vip:{found[1]}"
