"""What tests of the commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.small_project import SmallProject, small_project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SmallProject]:
    """A small project of which nothing is up."""
    with small_project(tmp_path) as project:
        yield project
