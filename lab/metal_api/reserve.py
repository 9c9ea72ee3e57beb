"""What sales does for real: hardware reservations with given ids for the lab's project. Asked again, it does nothing.

Run inside the lab as `python -m lab.metal_api.reserve --state DIR ID=PLAN ...`.
"""

from __future__ import annotations

import argparse
import sys

import httpx

from lab import facts
from lab.layout import Layout

_SECONDS = 20.0


def main() -> int:
    """Reserves each; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.metal_api.reserve", description=__doc__)
    parser.add_argument("--state", required=True, metavar="DIR", help="the lab's state directory")
    parser.add_argument("reservations", nargs="+", metavar="ID=PLAN", help="a reservation's id, and its plan")
    arguments = parser.parse_args()
    known = facts.require(Layout.of(arguments.state))
    if known.api is None:
        print("lab: a lab with a rack has no Metal API to reserve anything from", file=sys.stderr)
        return 1
    url = httpx.URL(known.api.url).join("/lab/hardware-reservations")
    with httpx.Client(headers={"X-Auth-Token": known.api.token}, verify=known.ca_path, timeout=_SECONDS) as client:
        for item in arguments.reservations:
            identity, _, plan = item.partition("=")
            answer = client.post(url, json={"id": identity, "plan": plan, "facility": known.api.facility})
            if not answer.is_success:
                print(f"lab: {item} cannot be reserved: {answer.text}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
