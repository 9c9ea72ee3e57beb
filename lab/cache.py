"""Directories of the user's cache: there whole, or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def filling(finished: Path) -> Generator[Path]:
    """A directory to fill, which is `finished` once the block ends well. Where somebody else did the same at the same
    time, theirs stays."""
    finished.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="filling-", dir=finished.parent))
    try:
        yield fresh
        fresh.chmod(0o755)
        try:
            fresh.rename(finished)
        except OSError:
            if not finished.is_dir():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
