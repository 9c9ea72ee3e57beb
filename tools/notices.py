"""What the outer half tells while it works."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print progress on stderr: stdout is for what was asked for."""
    print(text, file=sys.stderr, flush=True)
