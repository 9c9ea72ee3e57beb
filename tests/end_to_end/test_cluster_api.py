"""`up` of the stack capi7: a cluster through the lab's hub, by Cluster API and the image of our providers."""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest

from lab.hub import programs
from tests.end_to_end import processes, racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project
from tests.end_to_end.provisioned import kubectl

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly,
    pytest.mark.skipif(isinstance(programs.find(), str), reason=f"no hub here: {programs.find()}"),
]
_NAME, _SERVERS = "capi7", 4
_LONGEST = 1200.0
_KILLS = (
    ("metal_ipi.cluster_api", "cluster-api-cluster (Cluster): created"),
    ("--bind-address=192.0.2.15", "waiting for ControlPlaneInitialized"),
    ("lab.hub.node", "waiting for Available"),
)
"""The providers, the hub's API server, all of the hub: by their command lines, and by what `up` told before."""


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    yield from copies(tmp_path_factory.mktemp("capi"), stack=_NAME)


def _assert_there(project: Project) -> None:
    """The cluster is as one that `up` installed itself, and nothing of it is there twice."""
    told = project.output()
    names = [f"{_NAME}-{racks.name(number)}" for number in range(_SERVERS)]
    assert [node["name"].partition(".")[0] for node in told["nodes"]] == names
    assert all(check["status"] in ("passed", "skipped") for node in told["nodes"] for check in node["checks"]), told
    assert told["bootstrap"] == {"present": False}
    assert told["api"]["url"] == f"https://api.{_NAME}.facility.test:6443"
    assert told["kubeconfig"] == told["kubeadminPassword"] == "[secret]"
    made = json.loads(kubectl(project, "get", "machines,metalipimachines", "-o", "json", space=_NAME))["items"]
    assert sorted(each["kind"] for each in made) == ["Machine"] * _SERVERS + ["MetalIpiMachine"] * _SERVERS
    assert {each["power"] for each in project.rack("servers").values()} == {"on"}
    project.assert_unchanged("up")


def test_a_cluster_comes_and_goes(project: Project) -> None:
    """It tells whom it waits for; the bootstrap machine had the worker's server first."""
    told = project.make("up", seconds=_LONGEST).text
    assert "waiting for ControlPlaneInitialized: OpenShiftControlPlane capi7: Working: " in told
    _assert_there(project)
    boots = project.booted()["server-3"]
    assert boots[0] == boots[1], "the live system, twice"
    project.assert_unchanged("refresh", "up")
    project.assert_down()


def test_a_cluster_comes_whatever_is_killed(project: Project) -> None:
    """Each kill strikes one `up`; where that does not get over it, the next one does."""
    for victim, point in _KILLS:
        run = project.start("up")
        run.until(lambda run=run, point=point: point in run.printed(), point, _LONGEST)
        lab = project.supervisor()
        assert lab is not None
        found = [each for each in processes.family(lab.pid) if any(victim in word for word in each.command)]
        assert found, victim
        processes.kill(found)
        if victim != _KILLS[0][0]:  # nobody starts these again but the next `up`
            run.kill(lab)
            continue
        run.until(lambda run=run: _KILLS[1][1] in run.printed(), "the providers are started again", _LONGEST)
        run.kill(lab)
    project.make("up", seconds=_LONGEST)
    _assert_there(project)
    project.assert_down()
