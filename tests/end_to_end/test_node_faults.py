"""Nodes that do not come up: the gate that waits for them says which and why, and the console is kept.

The way on for a user: mend the cause, delete the machine, `make refresh`, `make up`.
"""

from __future__ import annotations

import pytest

from tests.end_to_end.cluster import DOMAIN, assert_finished
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

GATE = "worker-checks-reachable"
FAULTS = {
    "lab-worker-0": ("ignition_fails", "Ignition could not apply", "Ignition failed"),
    "lab-worker-1": ("wrong_rootfs", "the root file system is not the one", "rootfs hash mismatch"),
    "lab-worker-2": ("no_ssh", "refused", "masked"),
}
"""Each node's fault, what the gate says of it, what its console says."""


def test_the_gate_names_nodes_and_causes_and_new_machines_converge(project: Project) -> None:
    # Workers wait for the control plane, so they have the time for both.
    project.keep(workers={"count": len(FAULTS)})
    project.configure(timeouts={"machinesReachable": 15, "bootstrapComplete": 60})
    project.start_lab()
    faults = [{"kind": kind, "match": {"hostname": node}, "count": None} for node, (kind, *_) in FAULTS.items()]
    project.faults(*faults)

    failed = project.make("up", fails=True).text

    assert f"gate {GATE}" in failed, failed
    logs = project.root / ".state" / "logs" / "lab" / GATE
    assert f"logs: {logs}" in failed, failed
    for node, (_, cause, line) in FAULTS.items():
        said = [each for each in failed.splitlines() if f"{node}.{DOMAIN}" in each and cause in each]
        assert said, f"{node}: no '{cause}' in:\n{failed}"
        assert line in (logs / f"{node}.{DOMAIN}.console.log").read_text()
    project.faults()
    devices = project.devices()
    for node in FAULTS:
        project.inside("call", "DELETE", f"/devices/{devices.pop(node)}")
    project.make("refresh")
    assert devices == project.devices()

    project.make("up")

    assert_finished(project, workers=len(FAULTS))
