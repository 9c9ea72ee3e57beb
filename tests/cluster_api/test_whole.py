"""A whole cluster through Cluster API, in the lab's rack: bootstrap machine, control plane of three, workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster_api import hub as hubs
from tests.end_to_end import racks, secrets
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK
from tools.engine import ensure

_WORKERS = 2
_SERVERS = racks.CONTROL_PLANE + _WORKERS
pytestmark = [pytest.mark.lab, pytest.mark.nightly]


@pytest.mark.parametrize("do", ["0", "5", "day-two", "limited", "pivoted"])
def test_a_cluster_comes_and_goes(tmp_path: Path, do: str) -> None:
    """With the real core controllers, also where the providers are killed in the middle of steps; and what comes after:
    rolling changes, machines that are not healthy, another hub; a limit of the hub's; and the cluster itself as hub."""
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
        assert seen["installing"] == (["False", "Installed", ""] if do == "limited" else ["", "", ""])
        # The servers are off, their claims ended, and nothing of the cluster is uploaded any more.
        assert seen["left"] == 0 and seen["leases"] == ["metal-ipi-cluster-api"] and seen["state"] == []
        assert {each["power"] for each in project.rack("servers").values()} == {"off"}
        assert project.uploaded() == []


@pytest.mark.engine
def test_a_cluster_that_up_made_is_taken_over_and_given_back(tmp_path: Path) -> None:
    """No server notices; and `up` has nothing to do afterwards."""
    hubs.core()
    for project in copies(tmp_path, stack=RACK):
        project.make("up")
        engine = str(ensure(print).path)
        export = secrets.ask(project, engine, "export", "--show-secrets")
        command = (sys.executable, "-m", "metal_ipi.cluster_api.adopt")
        (taken := tmp_path / "taken.yaml").write_text(_printed(*command, "take", RACK, given=export))
        stack = str(project.root / "stacks" / f"Pulumi.{RACK}.yaml")
        facts = str(project.layout.state / "facts.json")
        adopt = (sys.executable, "-m", "tests.cluster_api.adopted", facts, stack, str(taken))
        (left := tmp_path / "left.yaml").write_text(project.facility(*adopt, seconds=900))
        (given := tmp_path / "given.json").write_text(_printed(*command, "give-back", str(left), given=export))
        secrets.ask(project, engine, "import", "--file", str(given))
        project.assert_unchanged("preview", "up")


def _printed(*command: str, given: str) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
