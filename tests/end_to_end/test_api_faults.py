"""One installation that fails again and again: nodes that do not come up, a Metal API that refuses, a machine that does
not boot. What passes by itself: test_policies.py.

The way on for a user, where a node is wrong: mend the cause, delete the machine, `make refresh`, `make up`.
"""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest

from tests.end_to_end.cluster import DOMAIN, assert_finished
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

ORDER = {"method": "POST", "path": "/devices$"}
GATE = "worker-checks-reachable"
FAULTS = {
    "lab-worker-0": ("ignition_fails", "Ignition could not apply", "Ignition failed"),
    "lab-worker-1": ("wrong_rootfs", "the root file system does not belong to the initramfs", "rootfs hash mismatch"),
    "lab-worker-2": ("no_ssh", "refused", "masked"),
}
"""Each node's fault, what the gate says of it, what its console says."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab runs, shared by this module's tests: the second goes on where the first ends."""
    variant = {**SMALL, "workers": {"count": len(FAULTS)}}
    for project in copies(tmp_path_factory.mktemp("faults"), variant=variant):
        project.start_lab()
        yield project


def test_the_gate_names_nodes_and_causes(project: Project) -> None:
    # Workers wait for the control plane, so they have the time for both.
    project.configure(timeouts={"machinesReachable": 15, "bootstrapComplete": 60})
    faults = [{"kind": kind, "match": {"hostname": node}, "count": None} for node, (kind, *_) in FAULTS.items()]
    project.faults(*faults)

    failed = project.make("up", fails=True).text
    project.faults()

    assert f"gate {GATE}" in failed, failed
    logs = project.root / ".state" / "logs" / "lab" / GATE
    assert f"logs: {logs}" in failed, failed
    for node, (_, cause, line) in FAULTS.items():
        said = [each for each in failed.splitlines() if f"{node}.{DOMAIN}" in each and cause in each]
        assert said, f"{node}: no '{cause}' in:\n{failed}"
        assert line in (logs / f"{node}.{DOMAIN}.console.log").read_text()


@pytest.mark.nightly
def test_a_refused_order_and_a_machine_that_never_boots_are_named_and_kept(project: Project) -> None:
    """They are new machines in the place of those that failed, and converge when nothing is wrong any more."""
    devices = project.devices()
    for node in FAULTS:
        project.inside("call", "DELETE", f"/devices/{devices.pop(node)}")
    project.make("refresh")
    assert devices == project.devices()
    project.configure(timeouts={"machinesActive": 6})

    project.faults(
        {"kind": "status", "match": ORDER, "count": 1, "status": 422, "body": {"errors": ["no capacity in lb"]}}
    )
    failed = project.make("up", fails=True).text
    told = re.search(r"(lab-worker-\d)-device \(Device\): .*no capacity in lb", failed)
    assert told and "422" in failed, failed
    hostname = told[1]
    first = _assert_nothing_is_lost(project)
    assert hostname not in first

    project.faults({"kind": "never_boots", "match": {"hostname": hostname}, "count": None})
    failed = project.make("up", fails=True).text
    assert re.search(rf"device {hostname} \(\S+\) is still provisioning after 6 s", failed), failed
    kept = _assert_nothing_is_lost(project)
    assert hostname in kept and first.items() <= kept.items()

    project.faults()
    project.configure()
    project.make("up")

    assert_finished(project, workers=len(FAULTS))
    assert all(kept[name] == id_ for name, id_ in project.devices().items() if name in kept)


def _assert_nothing_is_lost(project: Project) -> dict[str, str]:
    """What was ordered is in the state; returns it."""
    ordered = project.devices()
    assert set(ordered.values()) <= project.known_ids()
    return ordered
