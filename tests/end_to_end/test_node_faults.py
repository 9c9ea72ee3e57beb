"""Nodes that do not come up: the gate that waits for them says which and why, and the console is kept.

The way on for a user: mend the cause, delete the machine, `make refresh`, `make up`.
"""

from __future__ import annotations

import pytest

from tests.end_to_end.cluster import DOMAIN, assert_finished
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

NODE = "lab-worker-0"
GATE = "worker-checks-reachable"
FAULTS = (
    ("ignition_fails", "Ignition could not apply", "Ignition failed"),
    ("wrong_rootfs", "the root file system is not the one", "rootfs hash mismatch"),
    ("no_ssh", "refused", "masked"),
)
"""Fault, what the gate says, what the console says."""


def test_the_gate_names_node_and_cause_and_a_new_machine_converges(project: Project, subtests: pytest.Subtests) -> None:
    # Workers wait for the control plane, so they have the time for both.
    project.configure(timeouts={"machinesReachable": 15, "bootstrapComplete": 60})
    project.start_lab()
    for kind, cause, line in FAULTS:
        with subtests.test(kind=kind):
            project.faults({"kind": kind, "match": {"hostname": NODE}, "count": None})

            failed = project.make("up", fails=True).text

            assert f"gate {GATE}" in failed, failed
            assert f"{NODE}.{DOMAIN}" in failed, failed
            assert cause in failed, failed
            logs = project.root / ".state" / "logs" / "lab" / GATE
            assert f"logs: {logs}" in failed, failed
            assert line in (logs / f"{NODE}.{DOMAIN}.console.log").read_text()
        project.faults()
        device = next(each for each in project.holdings()["devices"] if each["hostname"] == NODE)
        others = {each["id"] for each in project.holdings()["devices"] if each["hostname"] != NODE}
        project.inside("call", "DELETE", f"/devices/{device['id']}")
        project.make("refresh")
        assert others == {each["id"] for each in project.holdings()["devices"] if each["hostname"] != NODE}

    project.make("up")

    assert_finished(project)
