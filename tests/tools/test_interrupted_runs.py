"""Whatever is killed, and whenever: nothing goes on running, and the next run ends with no duplicate and no orphan."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

import pytest

from tests.end_to_end import processes
from tests.end_to_end.processes import Process
from tests.lab.waiting import until
from tests.tools.small_project import SmallProject

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    "victim", ["engine", *(pytest.param(v, marks=pytest.mark.nightly) for v in ("everything", "driver", "inner"))]
)
def test_a_kill_of_anything_leaves_nothing_running_and_the_next_up_repairs(project: SmallProject, victim: str) -> None:
    run = project.start("up", SLOW="5")
    until(lambda: len(project.metal.devices()) == 2, 60)
    members = family(run.pid)
    kill(victim, members)
    out, err = run.communicate(timeout=30)
    assert run.returncode != 0, out + err
    assert not processes.survivors(members, 20)
    orphans = set(project.metal.devices())
    assert len(orphans) == 2
    assert project.state_ids() == {}

    told = project.run("up")

    assert "was interrupted or failed" in told
    assert told.count("deleting machine") == 2, told
    assert sorted(project.metal.devices().values()) == ["worker-0", "worker-1"]
    assert set(project.state_ids().values()) == set(project.metal.devices())
    assert not orphans & set(project.metal.devices())
    assert "no changes" in project.run("up")
    project.run("down")
    assert project.metal.devices() == {}


def test_down_after_a_kill_removes_what_no_state_knows(project: SmallProject) -> None:
    run = project.start("up", SLOW="5")
    until(lambda: len(project.metal.devices()) == 2, 60)
    kill("everything", family(run.pid))
    run.communicate(timeout=30)
    bystander = project.metal.order("other", "metal-ipi:stack=another")

    project.run("down")

    assert list(project.metal.devices()) == [bystander]
    assert not (project.root / ".state").exists()


def test_a_request_to_stop_cancels_and_tells(project: SmallProject) -> None:
    run = project.start("up", GATE="30")
    until(lambda: len(project.metal.devices()) == 2, 60)
    until(lambda: len(project.state_ids()) == 2, 60)
    started = time.monotonic()
    run.send_signal(signal.SIGTERM)
    assert run.stderr is not None
    assert any("stopping (SIGTERM)" in line for line in run.stderr)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=30)

    assert run.returncode != 0
    assert time.monotonic() - started < 15, out + err
    before = set(project.metal.devices())
    project.run("up")
    assert set(project.metal.devices()) == before, "machines that the state knows are kept"


def family(driver: int) -> list[Process]:
    """The driver and all below it: the inner half, the engine, its plug-ins and what stands between."""
    found = processes.family(driver)
    assert any(each.program == "pulumi" for each in found), found
    assert any("plugin.py" in word for each in found for word in each.command), found
    return found


def kill(victim: str, members: Sequence[Process]) -> None:
    """kill -9 of all of them, or of one: the driver, the inner half, the engine."""
    # The plug-in host is forked from the inner half, and has its arguments.
    inner = [each for each in members if each.program.startswith("python") and "engine" in each.command]
    chosen = {
        "everything": members,
        "driver": members[:1],
        "inner": sorted(inner, key=lambda each: each.pid)[:1],
        "engine": [each for each in members if each.program == "pulumi"],
    }[victim]
    assert chosen, members
    processes.kill(chosen)
