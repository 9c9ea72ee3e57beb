"""Writes files atomically: a reader, or a run after a crash, finds either the old or the new text, never a part of
it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def make_private(directory: Path) -> None:
    """Creates a directory and its missing parents, accessible only by the owner."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would give the parents the default mode


def write_private(path: Path, text: str) -> None:
    """Replaces the text of a file atomically; mode 0600."""
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
