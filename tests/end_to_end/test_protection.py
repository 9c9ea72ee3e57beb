"""Taking down what is protected: refused, with the way there."""

from __future__ import annotations

import pytest

from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def test_a_protected_cluster_is_taken_down_in_two_steps(project: Project) -> None:
    project.policies = True
    project.keep(protect=True)
    project.make("up")
    before = project.holdings()["devices"]
    refused = project.make("down", fails=True).text
    assert "error: the cluster of stack 'lab' is protected, and nothing was deleted" in refused
    assert "lab-control-plane-0-device" in refused and "keys" in refused
    assert "set metal-ipi:protect to false in stacks/Pulumi.lab.yaml, and run this again" in refused
    assert project.holdings()["devices"] == before
    assert "up: no changes" in project.make("up").out
    project.keep(protect=False)
    told = project.make("down").text
    assert "metal-ipi:protect is false: what was protected may go" in told and "nothing is left of the lab" in told


def test_what_no_run_saw_to_its_end_is_protected_as_well(project: Project) -> None:
    project.keep(protect=True)
    project.start_lab()
    project.faults({"kind": "ignition_fails", "match": {"hostname": "lab-bootstrap"}, "count": None})
    project.configure(timeouts={"machinesReachable": 15})
    project.make("up", fails=True)
    project.faults()
    project.configure()
    assert "is protected, and nothing was deleted" in project.make("down", fails=True).text
    project.keep(protect=False)
    assert "nothing is left of the lab" in project.make("down").text


def test_a_half_installed_cluster_goes_on_under_policies(project: Project) -> None:
    """With assets made anew its control plane is ordered again, which protection and quorum are not against."""
    project.policies = True
    project.keep(protect=True, install={"pullSecret": '{"auths":{"quay.io":{"auth":"d3Jvbmc="}}}'})
    (project.root / "policy" / "configuration" / "lab.json").write_text(
        '{"all": "mandatory", "boot-artifacts": {"httpHosts": ["boot.facility.test"]}}'
    )
    project.start_lab()
    project.faults({"kind": "ignition_fails", "match": {"hostname": "lab-bootstrap"}, "count": None})
    project.configure(timeouts={"machinesReachable": 15})
    project.make("up", fails=True)
    project.faults()
    project.keep(install={"pullSecret": '{"auths":{"quay.io":{"auth":"cmlnaHQ="}}}'})
    project.discard()
    assert "the installer's assets are made anew" in project.make("up").text
    assert "up: no changes" in project.make("up").out
    project.keep(protect=False)
