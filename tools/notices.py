"""Progress messages of the outer process."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Prints progress on stderr; stdout is only for requested results."""
    print(text, file=sys.stderr, flush=True)
