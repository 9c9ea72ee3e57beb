"""The stand-in's program, built once; without Go these tests are skipped, which pytest lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from binaries.errors import ProgramMissing
from binaries.golang import find_go
from lab.openshift.build import ensure

from .support import Facility


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        find_go()
    except ProgramMissing as error:
        pytest.skip(f"the OpenShift stand-in is a Go program: {error}")
    return ensure()


@pytest.fixture
def site(program: Path, tmp_path: Path) -> Facility:
    return Facility(program, tmp_path)
