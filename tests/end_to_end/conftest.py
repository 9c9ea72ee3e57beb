"""Copies of the project to install from."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from lab import control
from lab.setup import settle
from tests.end_to_end.project import RACK, Project


def copies(directory: Path, machines: str = "simulated", stack: str = "lab") -> Generator[Project, None, None]:
    """One copy of the project, closed afterwards whatever became of it."""
    refusal = control.sandbox_refusal()
    if refusal is not None:
        pytest.skip(f"this system allows no namespaces: {refusal}")
    project = Project(directory / "p", machines=machines, stack=stack)
    try:
        yield project
    finally:
        project.close()


@pytest.fixture
def emulated(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy of the project whose machines are emulated."""
    yield from _emulated(tmp_path)


@pytest.fixture
def emulated_rack(tmp_path: Path) -> Generator[Project, None, None]:
    """The same with the rack of servers."""
    yield from _emulated(tmp_path, stack=RACK)


def _emulated(directory: Path, stack: str = "lab") -> Generator[Project, None, None]:
    refusals: list[str] = []
    if settle("libvirt", refusals.append) != "libvirt":
        pytest.skip("; ".join(refusals))
    yield from copies(directory, machines="libvirt", stack=stack)


@pytest.fixture
def project(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy of the project, nothing of it up."""
    yield from copies(tmp_path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab stack is up, shared by a module's tests."""
    for project in copies(tmp_path_factory.mktemp("installed")):
        project.make("up")
        yield project
