"""Writing files so that a reader, or a run after a crash, finds the old text or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def make_private(directory: Path) -> None:
    """Make a directory, and those above it, that only the owner may enter."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would give those above the usual mode


def write_private(path: Path, text: str) -> None:
    """Replace a file's text atomically; mode 0600."""
    make_private(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
