"""Ironic on the hub while servers are deployed and given back through it: upgraded, killed, its hub started again.

No server is lost: each goes on through round after round, and is free at the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lab.hub import images
from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.provisioned import (
    API,
    BEFORE,
    CONDUCTORS,
    ON_A_HUB,
    SERVERS,
    Ironic,
    OlderIronic,
    kubectl,
    provider_sections,
)
from tests.lab.waiting import processes

pytestmark = [*ON_A_HUB, pytest.mark.nightly]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    """A copy whose hub has the release before, beside a rack."""
    directory = tmp_path_factory.mktemp("provisioning")
    older = OlderIronic(directory)
    for project in copies(directory, stack="hub"):
        project.lab("up", "--machines", project.machines, "--rack", str(SERVERS))
        project.lab("hub")
        project.keep(provisioning={"images": {"ironic": older.push(project)}})
        project.make("up", seconds=300)
        yield project
        project.assert_down()


@pytest.fixture
def ironic(project: Project, tmp_path: Path) -> Ironic:
    return Ironic(project, tmp_path)


class Load:
    """Servers that are deployed and given back, over and over."""

    def __init__(self, project: Project, ironic: Ironic, seconds: float, directory: Path) -> None:
        facts = json.loads(project.layout.facts.read_text())
        names = [racks.name(number) for number in range(SERVERS)]
        given = {"config": provider_sections(project, ironic), "servers": dict(zip(names, _macs(facts), strict=False))}
        self._said = directory / "load.jsonl"
        command = (sys.executable, "-m", "tests.end_to_end.ironic_load", str(seconds))
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lab", "run", "--state", str(project.layout.state), "--", *command],
                cwd=project.root,
                env=project.environment(),
                stdin=subprocess.PIPE,
                stdout=said,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given).encode())
        self._process.stdin.close()

    def steps(self) -> list[dict[str, Any]]:
        """What has begun."""
        return [json.loads(line) for line in self._said.read_text().splitlines() if line.startswith('{"at"')]

    def await_deploying(self) -> dict[str, Any]:
        """Wait until another deployment begins."""
        known = len(self.steps())
        await_(lambda: any(each["step"] == "deploy" for each in self.steps()[known:]), "another deployment", 180)
        return next(each for each in self.steps()[known:] if each["step"] == "deploy")

    def ended(self, seconds: float) -> dict[str, dict[str, Any]]:
        """What became of the servers; none was lost, and each was deployed."""
        assert self._process.wait(seconds) == 0
        found: dict[str, dict[str, Any]] = json.loads(self._said.read_text().splitlines()[-1])
        assert len(found) == SERVERS and not [each["error"] for each in found.values() if each["error"]], found
        assert all(each["rounds"] for each in found.values()), found
        return found


def _macs(facts: Mapping[str, Any]) -> list[str]:
    return [server["mac"] for server in facts["rack"]["servers"]]


def test_an_upgrade_with_another_schema(project: Project, ironic: Ironic, tmp_path: Path) -> None:
    assert ironic("version") == API[BEFORE]
    load = Load(project, ironic, 150, tmp_path)
    load.await_deploying()
    project.keep(provisioning={"images": {"ironic": images.IRONIC.reference}, "pinRelease": BEFORE})
    assert "ironic-schema-" in project.make("up", seconds=300).out
    assert ironic("version") == API[BEFORE], "pinned: conductors of both releases may run"
    load.await_deploying()
    project.keep(provisioning={"pinRelease": None})
    assert "ironic-migrations-" in project.make("up", seconds=300).out
    await_(lambda: ironic("version") == API["now"], "the release of now", 60)
    load.ended(400)
    assert ironic.states() == [["available", "power off", False]] * SERVERS
    project.assert_unchanged("up")


@pytest.mark.parametrize("stage", range(5))
def test_a_conductor_that_is_killed_at_any_stage(project: Project, ironic: Ironic, tmp_path: Path, stage: int) -> None:
    load = Load(project, ironic, 30, tmp_path)
    begun = load.await_deploying()
    time.sleep(1.5 * stage)
    its = ironic("nodes")[begun["server"]]
    kubectl(project, "delete", "pod", its, "--grace-period=0", "--force")
    load.ended(400)
    assert ironic.states() == [["available", "power off", False]] * SERVERS
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)


def test_a_database_that_is_killed(project: Project, ironic: Ironic, tmp_path: Path) -> None:
    load = Load(project, ironic, 30, tmp_path)
    load.await_deploying()
    kubectl(project, "delete", "pod", "database-0", "--grace-period=0", "--force")
    load.ended(400)
    assert ironic.states() == [["available", "power off", False]] * SERVERS


def test_a_hub_that_is_started_again(project: Project, ironic: Ironic, tmp_path: Path) -> None:
    """As if its node had lost power: whatever runs there ends at once."""
    load = Load(project, ironic, 30, tmp_path)
    load.await_deploying()
    for each in processes("lab.hub.node", project.layout.state):  # the first process of all that runs there
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    project.lab("hub")
    load.ended(500)
    assert ironic.states() == [["available", "power off", False]] * SERVERS
    project.assert_unchanged("up")
