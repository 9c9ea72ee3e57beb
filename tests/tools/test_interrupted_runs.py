"""Whatever is killed, and whenever: nothing goes on running, and the next run ends with no duplicate and no orphan."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import alive
from tests.tools.world import World
from tests.tools.world.metal import MetalServer

pytestmark = pytest.mark.engine


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with MetalServer() as metal:
        world = World(tmp_path / "project", metal)
        yield world
        world.close()


@pytest.mark.parametrize(
    "victim", ["engine", "everything", *(pytest.param(v, marks=pytest.mark.nightly) for v in ("driver", "inner"))]
)
def test_a_kill_of_anything_leaves_nothing_running_and_the_next_up_repairs(world: World, victim: str) -> None:
    run = world.start("up", SLOW="5")
    await_(lambda: len(world.metal.hostnames()) == 2)
    processes = family(run.pid)
    kill(victim, run.pid, processes)
    out, err = run.communicate(timeout=30)
    assert run.returncode != 0, out + err
    await_all_ended(processes)
    orphans = set(world.metal.devices)
    assert len(orphans) == 2
    assert world.state_ids() == {}

    told = world.run("up")

    assert "did not end well" in told
    assert told.count("deleting machine") == 2, told
    assert world.metal.hostnames() == ["worker-0", "worker-1"]
    assert set(world.state_ids().values()) == set(world.metal.devices)
    assert not orphans & set(world.metal.devices)
    assert "no changes" in world.run("up")
    world.run("down")
    assert world.metal.devices == {}


def test_down_after_a_kill_removes_what_no_state_knows(world: World) -> None:
    run = world.start("up", SLOW="5")
    await_(lambda: len(world.metal.hostnames()) == 2)
    kill("everything", run.pid, family(run.pid))
    run.communicate(timeout=30)
    bystander = world.metal.add("other", "metal-ipi:stack=another")

    world.run("down")

    assert list(world.metal.devices) == [bystander]
    assert not (world.root / ".state").exists()


def test_a_request_to_stop_cancels_and_tells(world: World) -> None:
    run = world.start("up", GATE="30")
    await_(lambda: len(world.metal.hostnames()) == 2)
    await_(lambda: len(world.state_ids()) == 2)
    started = time.monotonic()
    run.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=30)

    assert run.returncode != 0
    assert time.monotonic() - started < 15, out + err
    assert "stopping (SIGTERM)" in err
    before = set(world.metal.devices)
    world.run("up")
    assert set(world.metal.devices) == before, "machines that the state knows are kept"


def test_files_that_a_killed_engine_wrote_half_do_not_matter(world: World) -> None:
    world.run("up")
    (state,) = world.root.glob(".state/stacks/t/backend/.pulumi/stacks/*/t.json")
    assert not list(state.parent.glob("*.attrs")), "the backend writes them without any protection against kills"
    state.with_name("t.json.attrs").write_text("")
    state.with_name("t.json.18e9f5e7.tmp").write_text('{"version"')

    assert "no changes" in world.run("up")
    assert not list(state.parent.glob("*.tmp"))


def kill(victim: str, driver: int, processes: dict[str, int]) -> None:
    match victim:
        case "driver":
            os.kill(driver, signal.SIGKILL)
        case "engine":
            os.kill(processes["pulumi"], signal.SIGKILL)
        case "inner":
            os.kill(processes["inner"], signal.SIGKILL)
        case _:
            for pid in (driver, *processes.values()):
                with contextlib.suppress(ProcessLookupError):  # it died with one before
                    os.kill(pid, signal.SIGKILL)


def family(driver: int) -> dict[str, int]:
    """The processes below the driver: the inner half, the engine, its plug-ins and what stands between."""
    table = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [(int(pid), int(parent), args) for pid, parent, args in (line.split(None, 2) for line in table.splitlines())]
    below = {driver}
    found: dict[str, int] = {}
    for _ in range(8):
        for pid, parent, args in rows:
            if parent in below and pid not in below:
                below.add(pid)
                role = _role(args, pid)
                # The plug-in host is forked from the inner half, and has its arguments.
                found[role if role not in found else f"{role}'s child {pid}"] = pid
    assert {"inner", "pulumi"} <= set(found), table
    assert any(name.startswith("plug-in") for name in found), table
    return found


def _role(args: str, pid: int) -> str:
    program = Path(args.split(maxsplit=1)[0]).name
    if program == "pulumi":
        return "pulumi"
    if "plugin.py" in args:
        return f"plug-in {pid}"
    return "inner" if program.startswith("python") and " engine " in args else f"{program} {pid}"


def await_all_ended(processes: dict[str, int]) -> None:
    await_(lambda: not any(alive(pid) for pid in processes.values()), f"the end of {processes}")


def await_(condition: Callable[[], object], what: str = "the condition", seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)
