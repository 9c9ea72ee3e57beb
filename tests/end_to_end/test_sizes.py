"""Control planes of other sizes than three: from the start, and grown to on a rack. On Metal: test_policies.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end import racks
from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import RACK

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]


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


@pytest.mark.parametrize(("masters", "workers"), [(1, 2), (4, 0), (5, 2)])
def test_each_size_is_installed(masters: int, workers: int, tmp_path: Path) -> None:
    size = {"controlPlane": {"count": masters}, "workers": {"count": workers}}
    for project in copies(tmp_path, variant={**SMALL, **size}):
        project.make("up")
        assert_finished(project, workers, masters)
        project.assert_unchanged("refresh", "up")
        project.assert_down()
