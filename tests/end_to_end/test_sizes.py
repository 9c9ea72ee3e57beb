"""Control planes of other sizes than three: from the start, and grown to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end import racks
from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import RACK, Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def test_a_control_plane_of_three_grows_to_five(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.keep(workers={"count": 1})
    project.make("up")
    three = project.devices()
    project.keep(controlPlane={"count": 5})
    project.make("up")
    assert_finished(project, workers=1, masters=5)
    five = project.devices()
    assert {name: five[name] for name in three} == three, "nothing that was there is touched"
    project.assert_unchanged("preview", "up")

    monkeypatch.setenv("REPLACE", "lab-control-plane-1,lab-control-plane-2,lab-control-plane-3")
    assert "etcd has 5 members and goes on without 2 of them" in project.make("up", fails=True).text
    monkeypatch.setenv("REPLACE", "lab-control-plane-1")
    project.make("up")
    monkeypatch.delenv("REPLACE")
    assert_finished(project, workers=1, masters=5)
    after = project.devices()
    assert {name for name in five if after[name] != five[name]} == {"lab-control-plane-1"}

    project.configure(controlPlane={"count": 4})
    for command in ("preview", "up"):
        told = " ".join(project.make(command, fails=True).text.split())
        assert "lab-control-plane-4 would go, and nobody takes members out of etcd on platform none" in told
    assert project.devices() == after
    project.restore()
    project.assert_down()


@pytest.mark.nightly
def test_the_control_plane_of_a_rack_grows(tmp_path: Path) -> None:
    """Its bootstrap machine was a worker's server, which is a worker by then."""
    servers = racks.servers(3, {})
    for server, name in zip(servers[4:], ("control-plane-3", "control-plane-4"), strict=True):
        server["name"] = name
    for project in copies(tmp_path, stack=RACK):
        project.keep(platform={"servers": servers})
        project.start_lab()
        project.keep(platform={"servers": servers[:4]})
        project.make("up")
        booted = project.booted()
        project.keep(platform={"servers": servers})
        project.make("up")
        nodes = project.output()["nodes"]
        assert [node["name"].partition(".")[0] for node in nodes] == [
            *(f"{RACK}-control-plane-{number}" for number in range(5)),
            f"{RACK}-worker-0",
        ]
        after = project.booted()
        assert {name for name in booted if after[name] != booted[name]} == {"server-4", "server-5"}
        project.assert_unchanged("preview", "up")
        project.assert_down()


@pytest.mark.nightly
@pytest.mark.parametrize(("masters", "workers"), [(1, 2), (4, 0), (5, 2)])
def test_each_size_is_installed(masters: int, workers: int, tmp_path: Path) -> None:
    size = {"controlPlane": {"count": masters}, "workers": {"count": workers}}
    for project in copies(tmp_path, variant={**SMALL, **size}):
        project.make("up")
        assert_finished(project, workers, masters)
        project.assert_unchanged("refresh", "up")
        project.assert_down()
