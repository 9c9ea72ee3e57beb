"""OpenShift's own programs, and what they made of our facilities: what is asked for, once for all processes of a run.

Nothing is built here: `make conformance` does that first. Where a program is not there, a test is skipped that says so.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

from binaries.errors import ProgramMissing
from binaries.go_tool import GoTool
from lab.errors import SetupFailed
from lab.openshift.real import openshift_install
from lab.openshift.real import release as releases
from lab.openshift.real.release import Release
from tests.conformance.facilities import Facility, facility
from tests.conformance.machine_config import MachineConfig, machine_config

BUTANE = GoTool(
    program="butane",
    package="github.com/coreos/butane/internal",
    pins=Path(__file__).with_name("butane"),
    minutes="seconds",
)
Made = Callable[..., Facility]
Configured = Callable[[str], MachineConfig]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this package are of one group, whoever starts them."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.conformance)


Program = TypeVar("Program")
Result = TypeVar("Result")


def _built(what: str, find: Callable[[], Program | None]) -> Program:
    try:
        found = find()
    except (ProgramMissing, SetupFailed) as error:
        pytest.skip(f"{what} cannot be had: {error}")
    if found is None:
        pytest.skip(f"{what} is not built yet: `make conformance` builds it")
    return found


@pytest.fixture(scope="session")
def installer() -> Path:
    """The real openshift-install."""
    return _built("openshift-install", openshift_install.cached)


@pytest.fixture(scope="session")
def release() -> Release:
    """The real machine config programs."""
    return _built("the machine config operator", releases.cached)


@pytest.fixture(scope="session")
def merge() -> Path:
    """Ignition's own merge of configs."""
    return _built("ignition-merge", releases.cached_merge)


@pytest.fixture(scope="session")
def butane() -> Path:
    """The real butane."""
    return _built("butane", BUTANE.cached)


@pytest.fixture(scope="session")
def of_all(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A directory that all processes of the run share."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


def _once(name: str, of_all: Path, make: Callable[[Path], Result]) -> Result:
    """What `make` makes in an empty directory: the first process that wants it makes it, and the others read that."""
    kept = of_all / f"{name}.pickle"
    with FileLock(of_all / f"{name}.lock"):
        if not kept.exists():
            made = make(Path(tempfile.mkdtemp(prefix=f"{name}-", dir=of_all)))
            kept.write_bytes(pickle.dumps(made))
            return made
    return pickle.loads(kept.read_bytes())


@pytest.fixture(scope="session")
def made(installer: Path, of_all: Path) -> Made:
    """Answers a facility by its name in `SETTINGS`, and by its architecture."""

    @cache
    def find(name: str, architecture: str = "x86_64") -> Facility:
        return _once(f"{name}-{architecture}", of_all, lambda empty: facility(name, architecture, installer, empty))

    return find


@pytest.fixture(scope="session")
def configured(made: Made, release: Release, of_all: Path) -> Configured:
    """Answers what the real machine config programs render for a facility."""

    @cache
    def find(name: str) -> MachineConfig:
        return _once(f"{name}-machine-config", of_all, lambda empty: machine_config(made(name), release, empty))

    return find
