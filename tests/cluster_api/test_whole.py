"""A whole cluster through Cluster API, in the lab's rack: bootstrap machine, control plane of three, workers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster_api import hub as hubs
from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK

_WORKERS = 2
_SERVERS = racks.CONTROL_PLANE + _WORKERS
pytestmark = [pytest.mark.lab, pytest.mark.nightly]


@pytest.mark.parametrize("do", ["0", "5", "day-two"])
def test_a_cluster_comes_and_goes(tmp_path: Path, do: str) -> None:
    """With the real core controllers, also where the providers are killed in the middle of steps; and what comes after:
    rolling changes, machines that are not healthy, another hub."""
    hubs.core()
    for project in copies(tmp_path, stack=RACK, variant={"platform": {"servers": racks.servers(_WORKERS, {})}}):
        project.start_lab()
        stack = str(project.root / "stacks" / f"Pulumi.{RACK}.yaml")
        command = (
            sys.executable,
            "-m",
            "tests.cluster_api.whole",
            str(project.layout.state / "facts.json"),
            stack,
            do,
        )
        seen: dict[str, Any] = json.loads(project.facility(*command, seconds=1800).splitlines()[-1])
        assert sorted(seen["servers"].values()) == [racks.name(number) for number in range(_SERVERS)]
        nodes = {machine: f"{RACK}-{server}.{RACK}.facility.test" for machine, server in seen["servers"].items()}
        assert seen["machines"] == nodes
        assert sorted(seen["nodes"]) == sorted(nodes.values())
        assert seen["removed"] == "True" and seen["kubeconfig"]
        # The servers are off, their claims ended, and nothing of the cluster is uploaded any more.
        assert seen["left"] == 0 and seen["leases"] == ["metal-ipi-cluster-api"] and seen["state"] == []
        assert {each["power"] for each in project.rack("servers").values()} == {"off"}
        assert project.uploaded() == []
