"""`python -m tools.importing FILE PLACE`: prints one value of a file that `make import` reads."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.errors import ToolError
from tools.importing.documents import read


def main() -> int:
    """Prints the value, without a newline."""
    try:
        _, file, place = sys.argv
        value = read(Path(file)).at(place)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(value, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
