"""cert-manager: certificates of webhooks, which Cluster API's providers ask for. Built from its Go module.

Only what that takes is in the program (see cert-manager/main.go). There is no webhook: resources of cert-manager's are
checked by its definitions alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from binaries.go_tool import GoTool

PINS = Path(__file__).parent
MODULE = "github.com/cert-manager/cert-manager"

PROGRAM = GoTool(program="cert-manager", package="./cert-manager", pins=PINS, minutes="about 4 minutes")


def version() -> str:
    """The version that is pinned, e.g. `v1.19.1`."""
    found = re.search(rf"^\t{MODULE} (v\S+)$", (PINS / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins cert-manager"
    return found[1]
