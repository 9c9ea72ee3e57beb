"""A Metal API that misbehaves: what passes is repeated without making anything twice, the rest is told plainly."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.project import Project
from tests.end_to_end.test_configuration import WRONG

pytestmark = [pytest.mark.lab, pytest.mark.engine]

ORDER = {"method": "POST", "path": "/devices$"}
KEY = {"method": "POST", "path": "/ssh-keys$"}
LOOK = {"method": "GET", "path": "/devices/"}


def _fault(kind: str, match: dict[str, str], count: int = 1, **options: Any) -> dict[str, Any]:
    return {"kind": kind, "match": match, "count": count, **options}


def test_what_passes_is_repeated_and_nothing_is_made_twice(project: Project) -> None:
    faults = (
        _fault("status", ORDER, 2, status=429, headers={"Retry-After": "1"}),
        _fault("status", ORDER, status=500),
        _fault("status", ORDER, status=503, when="after"),
        _fault("reset", ORDER),
        _fault("reset", ORDER, when="after"),
        _fault("half_body", ORDER),
        _fault("delay", ORDER, seconds=3),
        _fault("status", KEY, status=429, headers={"Retry-After": "1"}),
        _fault("half_body", KEY),
        _fault("status", LOOK, 2, status=429, headers={"Retry-After": "1"}),
        _fault("status", LOOK, 2, status=500),
        _fault("reset", LOOK, 2),
        _fault("half_body", LOOK, 2),
        _fault("delay", LOOK, 2, seconds=3),
    )
    project.start_lab()
    project.faults(*faults)

    project.make("up")

    assert project.hits() == [fault["count"] for fault in faults], "every fault struck"
    project.faults()
    assert_finished(project)
    assert "no changes" in project.make("up").out

    project.configure(**WRONG)
    project.assert_down()  # which needs no good configuration
    project.configure()


def test_a_refused_order_and_a_machine_that_never_boots_are_named_and_kept(project: Project) -> None:
    project.configure(timeouts={"machinesActive": 6})
    project.start_lab()

    project.faults(_fault("status", ORDER, status=422, body={"errors": ["no capacity in lb"]}))
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
    resources = project.deployment()["resources"]
    known = {str(resource.get("id")) for resource in resources}
    known |= {str((resource.get("outputs") or {}).get("machineId")) for resource in resources}
    ordered = project.devices()
    assert set(ordered.values()) <= known
    return ordered
