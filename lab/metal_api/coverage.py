"""`python -m lab.metal_api.coverage`: write docs/emulated-api.md, what of the official API is here and what is not."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.metal_api import description
from lab.metal_api.application import OPERATIONS

ROOT = Path(__file__).parents[2]
DESCRIPTION = Path("..") / "shared" / "data" / "metal-openapi" / "openapi3.yaml"
"""From the project's root; no part of the project."""
DOCUMENT = Path("docs") / "emulated-api.md"
_OWN = """\
The lab's own routes, beside /metal/v1 and for the lab's own token only, make things scarce or go wrong:

- `PUT /lab/capacity` `{"metro": "da", "plan": "c3.small.x86", "servers": 2}`: how many there are to order in each
  facility of a metro; without `servers` as many as anybody wants.
- `POST /lab/hardware-reservations` `{"plan": "c3.small.x86", "facility": "da11"}`: sell a server, as sales does for
  real; with an `id` it has that.
- `POST /lab/spot-evictions` `{"id": "...", "seconds": 120}`: end a spot device.
- `POST /lab/faults`: statuses, delays, cut connections and machines that fail (lab/metal_api/faults.py); `GET` lists
  them, `DELETE` takes all away.
- `GET /lab/inventory` and `GET /lab/requests`: what exists, and what was asked for how often.
"""


def implemented() -> set[tuple[str, str]]:
    """The operations of the lab: path below /metal/v1, and method."""
    return {
        (path, method) for path, methods in OPERATIONS.items() if not path.startswith("/lab/") for method in methods
    }


def document(path: Path) -> str:
    """The document, from the official description."""
    described = description.operations(description.read(path))
    ours = implemented()
    lines = [
        "# The emulated Equinix Metal API",
        "",
        "Written by `python -m lab.metal_api.coverage`; a test fails when it is not up to date.",
        "",
        f"{len(ours & described.keys())} of the {len(described)} operations of the official description are "
        "implemented. The others answer",
        '501 and say so: `{"errors": ["not implemented in the lab: GET /metal/v1/..."]}`. 501 is the answer, too, to',
        "fields of bodies and query parameters of lists that nothing in this project sends.",
        "",
        "| path | method | operation | |",
        "|---|---|---|---|",
        *(
            f"| `{path}` | {method} | {entry.get('operationId', '')} "
            f"| {'implemented' if (path, method) in ours else '501'} |"
            for (path, method), entry in described.items()
        ),
        "",
        "Beside these the lab answers what the description does not list and clients use: PATCH where it lists PUT,",
        "and the reverse.",
        "",
        *(f"- `{method} {path}`" for path, method in sorted(ours - described.keys())),
        "",
        _OWN,
    ]
    return "\n".join(lines)


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
