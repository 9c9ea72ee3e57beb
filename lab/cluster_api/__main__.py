"""Installs Cluster API in the hub: `python -m lab.cluster_api --state DIR`, inside the lab's namespaces."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.cluster_api import control
from lab.errors import LabError
from lab.layout import Layout


def main() -> int:
    """Install it, or find it installed."""
    parser = argparse.ArgumentParser(prog="lab.cluster_api", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    parser.add_argument("--providers", type=Path, help="a folder with more providers")
    given = parser.parse_args()
    try:
        control.inside(Layout.of(given.state), lambda line: print(line, flush=True), given.providers)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
