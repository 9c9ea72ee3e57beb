"""The stand-in's program, built once; without Go these tests are skipped, which pytest lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import SetupFailed
from lab.golang import find_go
from lab.openshift.build import ensure

from .support import Facility, facility


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        find_go()
    except SetupFailed as error:
        pytest.skip(f"the OpenShift stand-in is a Go program: {error}")
    return ensure()


@pytest.fixture
def site(program: Path, tmp_path: Path) -> Iterator[Facility]:
    with facility(program, tmp_path) as result:
        yield result
