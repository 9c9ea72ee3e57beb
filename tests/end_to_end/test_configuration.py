"""A configuration with several mistakes: all are told at once, and nothing is made.

test_policies.py does the same to a cluster that is there. A virtual machine that bootstraps a rack: test_rack.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK, Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

PROBLEMS = (
    "metal-ipi:baseDomain = Facility_Test",
    "metal-ipi:controlPlane.count = 6",
    "metal-ipi:platform.metroo",
    "metal-ipi:workers.count = -1",
)


WRONG: dict[str, Any] = {
    "baseDomain": "Facility_Test",
    "controlPlane": {"count": 6},
    "workers": {"count": -1},
    "platform": {"metroo": "lb"},
}


def refused(project: Project, target: str) -> None:
    """A command tells each problem once and ends."""
    told = project.make(target, fails=True).text
    assert "has 4 problems; nothing was changed" in told, told
    for problem in PROBLEMS:
        assert told.count(problem) == 1, told
    assert "did you mean 'metro'?" in told
    assert "Traceback" not in told


def test_all_problems_at_once_before_anything_is_made(project: Project, subtests: pytest.Subtests) -> None:
    project.configure(**WRONG)
    for target in ("preview", "up"):
        with subtests.test(target=target):
            refused(project, target)
    assert not (project.root / ".state").exists(), "not even the lab"
    assert project.left() == []


def test_simulated_machines_come_without_a_libvirt(tmp_path: Path) -> None:
    for rack in copies(tmp_path, stack=RACK, variant={"platform": {"bootstrap": racks.LOCAL_VM}}):
        told = rack.make("up", fails=True).text
        assert "platform.bootstrap is of type local-vm, and simulated machines come without a libvirt" in told
        assert "use libvirt machines, or platform.bootstrap of type lend" in told
        assert rack.supervisor() is None
