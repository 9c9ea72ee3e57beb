"""CoreDNS, the DNS of a cluster: downloaded from its publisher, or built from its Go module with fewer plug-ins."""

from __future__ import annotations

import re
from pathlib import Path

from binaries.go_tool import GoTool
from binaries.program import Program
from binaries.release import Release, architecture

PINS = Path(__file__).parent
_RELEASES = "https://github.com/coredns/coredns/releases/download"


def version() -> str:
    """The version that go.mod beside this file pins, e.g. `1.12.4`."""
    found = re.search(r"^require github\.com/coredns/coredns v(\S+)$", (PINS / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins CoreDNS"
    return found[1]


def program() -> Program:
    """The program."""
    number, machine = version(), architecture("amd64", "arm64")
    url = f"{_RELEASES}/v{number}/coredns_{number}_linux_{machine}.tgz"
    return Program(
        name="coredns",
        version=number,
        release=Release(url=url, sums=f"{url}.sha256", member="coredns", check=("-version",))
        if machine is not None
        else None,
        builder=GoTool(program="coredns", package="./coredns", pins=PINS, minutes="about a minute"),
    )
