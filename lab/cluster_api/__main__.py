"""Installs Cluster API in the hub: `python -m lab.cluster_api --state DIR`, inside the lab's namespaces."""

from __future__ import annotations

import argparse
import sys

from lab.cluster_api import control
from lab.errors import LabError
from lab.layout import Layout


def main() -> int:
    """Install it, or find it installed."""
    parser = argparse.ArgumentParser(prog="lab.cluster_api", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    try:
        control.inside(Layout.of(parser.parse_args().state), lambda line: print(line, flush=True))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
