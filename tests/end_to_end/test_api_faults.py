"""A Metal API that refuses, and a machine that does not boot. What passes by itself: test_policies.py."""

from __future__ import annotations

import re

import pytest

from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

ORDER = {"method": "POST", "path": "/devices$"}


def test_a_refused_order_and_a_machine_that_never_boots_are_named_and_kept(project: Project) -> None:
    project.configure(timeouts={"machinesActive": 6})
    project.start_lab()

    project.faults(
        {"kind": "status", "match": ORDER, "count": 1, "status": 422, "body": {"errors": ["no capacity in lb"]}}
    )
    failed = project.make("up", fails=True).text
    told = re.search(r"(lab-[\w-]+?)(-device)? \((Device|EphemeralMachine)\): .*no capacity in lb", failed)
    assert told and "422" in failed, failed
    hostname = told[1]
    first = _assert_nothing_is_lost(project)
    assert hostname not in first

    project.faults({"kind": "never_boots", "match": {"hostname": hostname}, "count": None})
    failed = project.make("up", fails=True).text
    assert re.search(rf"(device|machine) {hostname} \(\S+\) is still provisioning after 6 s", failed), failed
    kept = _assert_nothing_is_lost(project)
    assert hostname in kept and first.items() <= kept.items()

    project.faults()
    project.configure()
    project.make("up")

    assert_finished(project)
    assert all(kept[name] == id_ for name, id_ in project.devices().items() if name in kept)


def _assert_nothing_is_lost(project: Project) -> dict[str, str]:
    """What was ordered is in the state; returns it."""
    ordered = project.devices()
    assert set(ordered.values()) <= project.known_ids()
    return ordered
