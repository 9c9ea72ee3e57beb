"""`python -m lab.metal_api.coverage`: write docs/emulated-api.md, what of the official API is here and what is not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.metal_api import application, description
from lab.metal_api.operations import Lab
from lab.metal_api.sources import Chance, SystemClock
from lab.metal_api.state import Account, Identity

ROOT = Path(__file__).parents[2]
DESCRIPTION = Path("..") / "shared" / "data" / "metal-openapi" / "openapi3.yaml"
"""From the project's root; no part of the project."""
DOCUMENT = Path("docs") / "emulated-api.md"
_OWN = """\
The lab's own routes, beside /metal/v1 and for the lab's own token only, make things scarce or go wrong:

- `PUT /lab/capacity` `{"metro": "da", "plan": "c3.small.x86", "servers": 2}`: how many there are to order, by metro or
  facility; `level` (normal, limited, unavailable) instead of `servers` says it without counting.
- `PUT /lab/rate-limit` `{"requests": 100, "seconds": 60}`: what is more is answered with 429 and `Retry-After`.
- `POST /lab/hardware-reservations` `{"plan": "c3.small.x86", "facility": "da11", "count": 2}`: sell servers, as sales
  does for real; also `id`, `spare`, `need_of_service`, `project_id`. `DELETE /lab/hardware-reservations/{id}` ends a
  contract.
- `POST /lab/spot-prices` `{"metro": "da", "plan": "c3.small.x86", "price": 0.3}`: who is outbid has two minutes left.
- `POST /lab/spot-evictions` `{"id": "...", "seconds": 120}`: end a spot device, or all of a spot market request.
- `POST /lab/faults`: statuses, delays, cut connections and machines that fail (lab/metal_api/faults.py).
- `GET /lab/inventory` and `GET /lab/requests`: what exists, and what was asked for how often.
"""
Operation = tuple[str, str]
"""Path below /metal/v1, and method."""


def implemented() -> set[Operation]:
    """The operations of the lab. They are listed and not called: there is nothing for them to work on."""
    account = Account(Identity(token="", organization_id="", project_id=""), SystemClock(), Chance())
    nothing: Any = None
    lab = Lab(account=account, provisioner=nothing, store=nothing, routing=nothing)
    return {(path, method) for path, methods in application.table(lab) for method in methods}


def text(described: Iterable[tuple[Operation, str]], ours: set[Operation]) -> str:
    """The document. `described` are operations and their ids, in the order of the official description."""
    listed = list(described)
    here = [operation for operation, _ in listed if operation in ours]
    more = sorted(ours - {operation for operation, _ in listed})
    lines = [
        "# The emulated Equinix Metal API",
        "",
        "Written by `python -m lab.metal_api.coverage`; a test fails when it is not up to date.",
        "",
        f"{len(here)} of the {len(listed)} operations of the official description are implemented. The others answer",
        '501 and say so: `{"errors": ["not implemented in the lab: GET /metal/v1/..."]}`.',
        "",
        "| path | method | operation | |",
        "|---|---|---|---|",
        *(
            f"| `{path}` | {method} | {name} | {'implemented' if (path, method) in ours else '501'} |"
            for (path, method), name in listed
        ),
        "",
        "Beside these the lab answers what the description does not list and clients use: PATCH where it lists PUT,",
        "and the reverse.",
        "",
        *(f"- `{method} {path}`" for path, method in more),
        "",
        _OWN,
    ]
    return "\n".join(lines)


def document(path: Path) -> str:
    """The document, from the official description."""
    operations = description.operations(description.read(path))
    return text(((key, entry.get("operationId", "")) for key, entry in operations.items()), implemented())


def main() -> int:
    """Write it."""
    parser = argparse.ArgumentParser(prog="lab.metal_api.coverage", description=__doc__)
    parser.add_argument("--description", type=Path, default=ROOT / DESCRIPTION, help=f"default: {DESCRIPTION}")
    options = parser.parse_args()
    if not options.description.is_file():
        print(f"lab.metal_api.coverage: {options.description} is not there: name the description", file=sys.stderr)
        return 1
    (ROOT / DOCUMENT).write_text(document(options.description))
    return 0


if __name__ == "__main__":
    sys.exit(main())
