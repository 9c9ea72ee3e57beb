"""What the facility's router holds, as JSON: `python -m lab.network.routes --state DIR`.

    {"sessions": {"<session id>": {"states": ["up", "up"], "learned": ["192.0.2.128/32"]}},
     "routes": [{"prefix": "192.0.2.128/32", "via": ["203.0.113.1"], "sessions": ["<session id>"]}]}

`via` are the private addresses of the machines that announce it (the public one of a machine that it is assigned to;
then there is no session), and is empty while none can be reached. Null for a lab without a router.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from pathlib import Path
from typing import Any

from lab import facts
from lab.errors import LabError, NotRunning
from lab.layout import Layout
from lab.network import bird, bird_control
from lab.supervision import holder


def document(layout: Layout) -> dict[str, Any] | None:
    """What the router of a running lab holds; raises NotRunning and RouterError."""
    if facts.require(layout).bgp is None:
        return None
    if holder(layout.lock) is None:
        raise NotRunning(f"no lab runs in {layout.state}: start it with `python -m lab up --state {layout.state}`")
    return read(bird.directory(layout))


def read(directory: Path) -> dict[str, Any]:
    """What the router that runs in `directory` holds."""
    states, routes = bird_control.read(directory)
    peers = sorted({session for name in states if (session := _session(name))})
    found = bird_control.seen(peers, states, routes)
    return {
        "sessions": {
            peer: {"states": list(entry.states), "learned": list(entry.learned)} for peer, entry in found.items()
        },
        "routes": [
            {
                "prefix": route.prefix,
                "via": list(route.via),
                "sessions": sorted({session for name in route.protocols if (session := _session(name))}),
            }
            for route in routes
        ],
    }


def _session(protocol: str) -> str | None:
    """The session behind a protocol's name (see `bird.protocol`), None if there is none."""
    name, _, number = protocol.rpartition("_")
    if not (name.startswith("s") and len(name) == 33 and number.isdecimal()):
        return None
    return str(uuid.UUID(name[1:]))


def main() -> int:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", required=True, metavar="DIR", help="the lab's state directory")
    try:
        print(json.dumps(document(Layout.of(parser.parse_args().state)), indent=2))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
