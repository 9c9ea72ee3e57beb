"""The stand-in's program, built once; without Go these tests are skipped, which pytest lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from binaries.errors import ProgramMissing
from binaries.golang import find_go
from lab.openshift.build import ensure
from tests.lab.kubernetes.support import ready_to_run

from .support import Facility, facility


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        find_go()
    except ProgramMissing as error:
        pytest.skip(f"the OpenShift stand-in is a Go program: {error}")
    return ensure()


@pytest.fixture(params=["small", pytest.param("real", marks=pytest.mark.nightly)])
def any_site(request: pytest.FixtureRequest, site: Facility) -> Facility:
    """A facility whose API servers are the lab's small ones, and at night one whose API servers are real: by day
    tests/end_to_end has clusters with these."""
    if request.param == "real":
        ready_to_run()
    site.run_api_servers(real=request.param == "real")
    return site


@pytest.fixture
def site(program: Path, tmp_path: Path) -> Iterator[Facility]:
    with facility(program, tmp_path) as result:
        yield result
