"""The commands, from outside, with the real engine: what they print and how they end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.world import REPOSITORY, World
from tests.tools.world.metal import TOKEN, MetalServer

pytestmark = pytest.mark.engine


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with MetalServer() as metal:
        world = World(tmp_path / "project", metal)
        yield world
        world.close()


def tree(root: Path) -> dict[str, str]:
    """The project's files, without `.state`."""
    files = [file for file in root.rglob("*") if file.is_file() and ".state" not in file.parts]
    return {str(file): file.read_text() for file in files if file.suffix != ".pyc"}


def test_the_life_of_a_stack(world: World) -> None:
    before = tree(world.root)
    assert "4 to create" in world.run("preview")
    assert world.metal.devices == {}

    told = world.run("up")
    assert "worker-0 (Device): created" in told
    assert "gate reachable: passed" in told
    assert "ok 1/2; skipped: afterburn (not built)" in told
    assert "no changes" in world.run("up")
    assert "no changes" in world.run("refresh")
    assert "no changes" in world.run("preview")

    known = world.state_ids()
    world.configure(workers="3")
    assert "1 created" in world.run("up")
    assert {name: world.state_ids()[name] for name in known} == known

    with world.start("output") as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    outputs = json.loads(out)
    assert outputs["cluster"] == "t"
    assert outputs["api"]["url"] == "https://api.example.test:6443"
    assert outputs["kubeconfig"] == "[secret]"
    with world.start("kubeconfig") as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "a very secret kubeconfig\n"), err

    world.run("down")
    assert world.metal.devices == {}
    assert not (world.root / ".state").exists()
    world.configure()
    assert tree(world.root) == before, "the work tree stays as it was"


def test_secrets_stay_where_they_belong(world: World) -> None:
    told = world.run("up")
    for file in world.root.joinpath(".state").rglob("*"):
        if file.is_file() and not file.is_symlink():
            assert "a very secret kubeconfig" not in file.read_text(errors="replace"), file
    assert "a very secret kubeconfig" not in told
    assert TOKEN not in told
    assert (world.root / ".state/stacks/t").stat().st_mode & 0o077 == 0


def test_a_failing_resource_is_told_once_with_its_cause(world: World) -> None:
    world.configure(fail="there is no plan x9")
    told = world.run("up", status=1)
    assert told.count("there is no plan x9") == 1
    assert "broken (Device):" in told
    assert "Traceback" not in told
    world.configure()
    assert "did not end well" in world.run("up")


def test_a_failing_program_is_told_without_its_traceback(world: World) -> None:
    world.configure(**{"raise": "oops"})
    told = world.run("up", status=1)
    assert "KeyError: 'oops'" in told
    assert "Traceback" not in told
    assert "Traceback" in (world.root / ".state/stacks/t/failure.log").read_text()


def test_a_renamed_cluster_is_refused_before_its_machines_are_ordered_anew(world: World) -> None:
    world.run("up")
    machines = set(world.metal.devices)
    world.configure(clusterName="d")
    told = world.run("up", status=1)
    assert "stack 't' holds the cluster c.test, and its file names d.test" in told
    assert set(world.metal.devices) == machines
    world.run("down")
    assert world.metal.devices == {}


def test_a_lab_stacks_bad_settings_are_told_before_the_lab_is_made(world: World) -> None:
    shutil.rmtree(world.root / "stacks")
    shutil.copytree(REPOSITORY / "stacks", world.root / "stacks")
    world.configure(lab={"machines": "simulated"}, wrokers={"count": 1})
    told = world.run("up", status=1)
    assert "metal-ipi:wrokers" in told and "did you mean 'workers'?" in told
    assert not (world.root / ".state").exists()


@pytest.mark.parametrize("command", ["output", "kubeconfig"])
def test_output_without_a_stack_says_so_and_prints_nothing(world: World, command: str) -> None:
    with world.start(command) as process:
        out, err = process.communicate()
    assert process.returncode == 1
    assert out == ""
    assert "there is no stack 't'" in err


def test_a_reader_that_leaves_does_not_stop_the_run(world: World) -> None:
    process = world.start("up")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert len(world.metal.devices) == 2


def test_a_rehearsal_works_without_any_network(world: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may cut the network off here")
    alone = ("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    result = subprocess.run(
        [*alone, sys.executable, "-m", "tools", "--root", str(world.root), "preview", "--stack", "t"],
        env={**os.environ, "METAL_API_URL": world.metal.url, "TEST_METAL_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "4 to create" in result.stdout
    assert not (world.root / ".state").exists()
