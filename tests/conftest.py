"""What all tests share."""

from __future__ import annotations

import os

from tools import engine


def pytest_configure() -> None:
    """Let tests run the engine that set-up found or built; without one they are listed skips."""
    found = engine.find()
    if found is not None:
        os.environ.setdefault("METAL_IPI_ENGINE", str(found.path))
