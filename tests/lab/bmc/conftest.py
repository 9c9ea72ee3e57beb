"""A rack of one server for each test."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.lab.bmc.harness import World, world


@pytest.fixture
def lab(tmp_path: Path) -> Generator[World, None, None]:
    with world(tmp_path) as made:
        yield made
