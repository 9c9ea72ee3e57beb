"""Policies on a cluster that is there, and which was installed while the Metal API stumbled.

What passes is repeated without making anything twice. Then an unchanged cluster previews as empty, and etcd's machines
are not taken away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine]

_RULE = "policy control-plane-quorum: "
_WRONG: dict[str, Any] = {
    "baseDomain": "Facility_Test",
    "controlPlane": {"count": 6},
    "workers": {"count": -1},
    "platform": {"metroo": "lb"},
}
_PROBLEMS = (
    "metal-ipi:baseDomain = Facility_Test",
    "metal-ipi:controlPlane.count = 6",
    "metal-ipi:platform.metroo",
    "metal-ipi:workers.count = -1",
)
"""What is told of it: tests/tools/test_commands.py has the same of a stack of which nothing is there."""
_ORDER = {"method": "POST", "path": "/devices$"}
_KEY = {"method": "POST", "path": "/ssh-keys$"}
_LOOK = {"method": "GET", "path": "/devices/"}


def _fault(kind: str, match: dict[str, str], count: int = 1, **options: Any) -> dict[str, Any]:
    return {"kind": kind, "match": match, "count": count, **options}


_FAULTS = (
    _fault("status", _ORDER, 2, status=429, headers={"Retry-After": "1"}),
    _fault("status", _ORDER, status=500),
    _fault("status", _ORDER, status=503, when="after"),
    _fault("reset", _ORDER),
    _fault("reset", _ORDER, when="after"),
    _fault("half_body", _ORDER),
    _fault("delay", _ORDER, seconds=3),
    _fault("status", _KEY, status=429, headers={"Retry-After": "1"}),
    _fault("half_body", _KEY),
    _fault("status", _LOOK, 2, status=429, headers={"Retry-After": "1"}),
    _fault("status", _LOOK, 2, status=500),
    _fault("reset", _LOOK, 2),
    _fault("half_body", _LOOK, 2),
    _fault("delay", _LOOK, 2, seconds=3),
)
"""test_fault_matrix.py has every call fail, at night."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab stack is up, installed in spite of the API's faults; from then on its policies are asked."""
    for project in copies(tmp_path_factory.mktemp("policies"), variant=SMALL):
        project.start_lab()
        project.faults(*_FAULTS)
        project.make("up")
        assert project.hits() == [fault["count"] for fault in _FAULTS], "every fault struck"
        project.faults()
        project.policies = True
        yield project


@pytest.fixture(autouse=True)
def _committed(cluster: Project) -> Generator[None, None, None]:
    yield
    cluster.restore()


def test_what_passes_was_repeated_and_nothing_was_made_twice(cluster: Project) -> None:
    assert_finished(cluster)
    cluster.assert_unchanged("preview")


def test_a_change_that_deletes_control_plane_machines_is_refused(cluster: Project) -> None:
    before = cluster.devices()
    cluster.configure(controlPlane={"count": 1}, workers={"count": 0}, reprovision={"consent": ["control-plane-0"]})
    told = cluster.make("up", fails=True).text  # the program says so itself, before policies are asked
    assert "lab-control-plane-1, lab-control-plane-2 would be deleted" in told and "nothing was changed" in told
    assert cluster.devices() == before


def test_an_up_asks_the_policies_first_about_what_changed_since_the_last_one(
    cluster: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    (wrapper := tmp_path / "pulumi").write_text(f'#!/bin/sh\necho " $* " >> {asked}\nexec {ensure(print).path} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def previews(*, fails: bool = False) -> tuple[int, str]:
        asked.unlink(missing_ok=True)
        told = cluster.make("up", fails=fails).text
        return asked.read_text().count(" preview "), told

    assert previews()[0] == 1, "the `up` before asked no policies"
    assert previews()[0] == 0
    configuration = cluster.root / "policy" / "configuration" / "lab.json"
    before = configuration.read_text()
    configuration.write_text(json.dumps({**json.loads(before), "hourly-budget": {"maxHourly": 0.5}}))
    try:
        count, told = previews(fails=True)
    finally:
        configuration.write_text(before)
    assert count == 1 and "policy hourly-budget: " in told and "was refused, and nothing was changed" in told


@pytest.mark.nightly
def test_a_preview_of_another_cluster_in_its_place_is_refused(cluster: Project) -> None:
    cluster.configure(clusterName="other")
    told = cluster.make("preview", fails=True).text
    assert f"{_RULE}lab-control-plane-0 would be deleted, or replaced" in told


@pytest.mark.nightly
def test_a_bad_configuration_changes_nothing(cluster: Project) -> None:
    before, uploaded = cluster.holdings(), cluster.uploaded()
    cluster.configure(**_WRONG)
    told = cluster.make("up", fails=True).text
    assert "has 4 problems; nothing was changed" in told, told
    assert [told.count(problem) for problem in _PROBLEMS] == [1] * 4, told
    assert "did you mean 'metro'?" in told and "Traceback" not in told
    assert cluster.holdings() == before
    assert cluster.uploaded() == uploaded


@pytest.mark.nightly
def test_a_replacement_without_consent_is_refused_before_anything_is_done(
    cluster: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cluster.devices()
    monkeypatch.setenv("REPLACE", "lab-control-plane-0")
    told = cluster.make("up", fails=True).text
    assert f"{_RULE}lab-control-plane-0 would be deleted, or replaced" in told
    assert "nothing was changed" in told
    monkeypatch.delenv("REPLACE")
    assert cluster.devices() == before


@pytest.mark.nightly
def test_a_control_plane_of_three_grows_to_five(cluster: Project) -> None:
    three = cluster.devices()
    cluster.keep(controlPlane={"count": 5})
    assert "was interrupted or failed" not in cluster.make("up").text, (
        "what was refused before leaves nothing to recover"
    )
    assert_finished(cluster, masters=5)
    five = cluster.devices()
    assert {name: five[name] for name in three} == three, "nothing that was there is touched"


@pytest.mark.nightly
def test_one_is_replaced_with_consent_and_not_three(cluster: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cluster.devices()
    cluster.configure(reprovision={"consent": [f"control-plane-{number}" for number in range(3)]})
    monkeypatch.setenv("REPLACE", "lab-control-plane-0,lab-control-plane-1,lab-control-plane-2")
    assert "etcd has 5 members and works without 2 of them" in cluster.make("up", fails=True).text
    monkeypatch.setenv("REPLACE", "lab-control-plane-0")
    cluster.make("up")
    after = cluster.devices()
    assert {name for name in before if after[name] != before[name]} == {"lab-control-plane-0"}


@pytest.mark.nightly
def test_a_protected_cluster_is_taken_down_in_two_steps(cluster: Project) -> None:
    cluster.keep(protect=True)
    cluster.make("up")
    before = cluster.devices()
    refused = cluster.make("down", fails=True).text
    assert "error: the cluster of stack 'lab' is protected, and nothing was deleted" in refused
    assert "lab-control-plane-0-device" in refused and "keys" in refused
    assert "set metal-ipi:protect to false in stacks/Pulumi.lab.yaml, and run the same command again" in refused
    assert cluster.devices() == before
    cluster.keep(protect=False)
    cluster.configure(**_WRONG)
    told = cluster.assert_down().text  # which asks no policies, and needs no good configuration
    assert "metal-ipi:protect is false: protected resources may be deleted" in told
