"""`python -m lab.node_image`: build the node image and print its sizes as JSON."""

from __future__ import annotations

import json
import sys
import time

from lab.errors import LabError
from lab.node_image.build import ensure


def main() -> int:
    """Build, print, done."""
    started = time.monotonic()
    try:
        image = ensure()
    except LabError as error:
        print(f"node image: {error}", file=sys.stderr)
        return 1
    sizes = {path.name: path.stat().st_size for path in image.directory.iterdir()}
    seconds = round(time.monotonic() - started, 1)
    report = {"release": image.release, "directory": str(image.directory), "programs": image.programs}
    print(json.dumps({**report, "bytes": sizes, "seconds": seconds}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
