"""A Metal API that misbehaves: what passes is repeated without making anything twice, the rest is told plainly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.project import Project

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
        _fault("delay", KEY, seconds=2),
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


def test_a_refused_order_and_a_machine_that_never_boots_are_named_and_kept(project: Project) -> None:
    project.configure(timeouts={"machinesActive": 6})
    project.start_lab()
    project.faults(
        _fault("status", ORDER, status=422, body={"errors": ["no capacity in lb"]}),
        {"kind": "never_boots", "match": {"hostname": "lab-worker-1"}},
    )

    failed = project.make("up", fails=True).text

    assert "no capacity in lb" in failed
    assert "lab-worker-1-device (Device): device lab-worker-1" in failed and "still provisioning after 6 s" in failed
    ordered = {device["hostname"]: device["id"] for device in project.holdings()["devices"]}
    assert "lab-worker-1" in ordered and len(ordered) in (4, 5, 6)
    known = {str(resource.get("id")) for resource in project.deployment()["resources"]}
    known |= {str((r.get("outputs") or {}).get("machineId")) for r in project.deployment()["resources"]}
    assert set(ordered.values()) <= known, "what was ordered is in the state"

    project.faults()
    project.configure()
    project.make("up")

    assert_finished(project)
    devices = {device["hostname"]: device["id"] for device in project.holdings()["devices"]}
    assert {name: devices[name] for name in ordered if name in devices} == {
        name: id_ for name, id_ in ordered.items() if name in devices
    }
