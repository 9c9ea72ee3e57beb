"""A configuration with several mistakes: all are told at once, and nothing is made."""

from __future__ import annotations

import pytest

from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

PROBLEMS = (
    "metal-ipi:baseDomain = Facility_Test",
    "metal-ipi:controlPlane.count = 2",
    "metal-ipi:platform.metroo",
    "metal-ipi:workers.count = -1",
)


def test_all_problems_at_once_before_anything_is_made(project: Project, subtests: pytest.Subtests) -> None:
    project.configure(
        baseDomain="Facility_Test", controlPlane={"count": 2}, workers={"count": -1}, platform={"metroo": "lb"}
    )
    for target in ("preview", "up", "preview"):  # with and without a lab and a state
        with subtests.test(target=target):
            told = project.make(target, fails=True).text
            assert "has 4 problems; nothing was changed" in told, told
            for problem in PROBLEMS:
                assert told.count(problem) == 1, told
            assert "did you mean 'metro'?" in told
            assert "Traceback" not in told
    holdings = project.holdings()
    assert not holdings["devices"] and not holdings["ssh_keys"] and not holdings["records"]
    assert project.uploaded() == []

    project.make("down")  # which needs no good configuration

    assert project.left() == []
