"""Copies of the project to install from."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab import control
from lab.kubernetes import programs
from lab.setup import settle
from tests.end_to_end.project import RACK, Project

SMALL: dict[str, Any] = {"lab": {"kubernetes": "small"}}
"""Without a real Kubernetes API, which takes two fifths of an installation's processor time: where it is not what is
tested."""


def copies(
    directory: Path, machines: str = "simulated", stack: str = "lab", variant: Mapping[str, Any] | None = None
) -> Generator[Project, None, None]:
    """One copy of the project, closed afterwards whatever became of it."""
    refusal = control.sandbox_refusal()
    if refusal is not None:
        pytest.skip(f"this system allows no namespaces: {refusal}")
    project = Project(directory / "p", machines=machines, stack=stack, variant=variant)
    try:
        yield project
    finally:
        project.close()


@pytest.fixture
def emulation() -> None:
    """Skips where machines cannot be emulated."""
    refusals: list[str] = []
    if settle("libvirt", refusals.append) != "libvirt":
        pytest.skip("; ".join(refusals))


@pytest.fixture
def emulated(tmp_path: Path, emulation: None) -> Generator[Project, None, None]:
    """A copy of the project whose machines are emulated."""
    yield from copies(tmp_path, machines="libvirt")


@pytest.fixture
def emulated_rack(tmp_path: Path, emulation: None) -> Generator[Project, None, None]:
    """The same with the rack of servers."""
    yield from copies(tmp_path, machines="libvirt", stack=RACK)


@pytest.fixture
def project(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy of the project, nothing of it up; its clusters have a small Kubernetes API unless told otherwise."""
    yield from copies(tmp_path, variant=SMALL)


@pytest.fixture
def rack(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy of the project whose stack is the rack of servers, nothing of it up."""
    yield from copies(tmp_path, stack=RACK)


@pytest.fixture(scope="session")
def kubernetes() -> None:
    """Skips where there is no real Kubernetes API."""
    reason = programs.find()
    if isinstance(reason, str):
        pytest.skip(f"no real Kubernetes API here: {reason}")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab stack is up, shared by a module's tests."""
    for project in copies(tmp_path_factory.mktemp("installed")):
        project.make("up")
        yield project
