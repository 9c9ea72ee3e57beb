"""The commands, from outside, with the real engine: what they print and how they end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.lab.metal_api.harness import IDENTITY
from tests.tools.small_project import SmallProject
from tests.tools.svg_geometry import all_text

pytestmark = pytest.mark.engine


def tree(root: Path) -> dict[str, str]:
    """The project's files, without `.state`."""
    files = [file for file in root.rglob("*") if file.is_file() and ".state" not in file.parts]
    return {str(file): file.read_text() for file in files if file.suffix != ".pyc"}


def test_the_life_of_a_stack(project: SmallProject) -> None:
    before = tree(project.root)
    assert "no timeline of stack 't'" in project.run("timeline", status=1)
    assert "4 to create" in project.run("preview")
    assert project.metal.devices() == {}

    told = project.run("up")
    assert "worker-0 (Device): created" in told
    assert "gate reachable: passed" in told
    assert "ok 1/2; skipped: afterburn (not built)" in told
    assert_no_secret_is_told_or_kept(project, told)
    for command in ("up", "refresh", "preview"):
        assert "no changes" in project.run(command)
    files_that_a_killed_engine_wrote_half_do_not_matter(project)

    known = project.state_ids()
    project.configure(clusterName="d")
    refused = project.run("up", status=1)
    assert "stack 't' has the cluster c.test, and its file names d.test" in refused
    assert set(project.metal.devices()) == set(known.values()), "no machine is ordered anew"

    project.configure(workers="3")
    assert "1 created" in project.run("up")
    assert {name: project.state_ids()[name] for name in known} == known

    outputs = json.loads(project.ended("output")[0])
    assert outputs["cluster"] == "t"
    assert outputs["api"]["url"] == "https://api.example.test:6443"
    assert outputs["kubeconfig"] == "[secret]"
    assert project.ended("kubeconfig")[0] == "a very secret kubeconfig\n"

    project.run("down")
    assert project.metal.devices() == {}
    assert not (project.root / ".state").exists()
    assert "no timeline of stack 't'" in project.run("timeline", status=1)
    project.configure()
    assert tree(project.root) == before, "the work tree stays as it was"


def assert_no_secret_is_told_or_kept(project: SmallProject, told: str) -> None:
    """After an `up` that told this."""
    for file in project.root.joinpath(".state").rglob("*"):
        if file.is_file() and not file.is_symlink():
            assert "a very secret kubeconfig" not in file.read_text(errors="replace"), file
    assert "a very secret kubeconfig" not in told
    assert IDENTITY.token not in told
    assert (project.root / ".state/stacks/t").stat().st_mode & 0o077 == 0


def files_that_a_killed_engine_wrote_half_do_not_matter(project: SmallProject) -> None:
    """An `up` goes on from the state itself, which is replaced atomically."""
    (state,) = project.root.glob(".state/stacks/t/backend/.pulumi/stacks/*/t.json")
    assert not list(state.parent.glob("*.attrs")), "the backend writes them without any protection against kills"
    state.with_name("t.json.attrs").write_text("")
    state.with_name("t.json.18e9f5e7.tmp").write_text('{"version"')
    assert "no changes" in project.run("up")
    assert not list(state.parent.glob("*.tmp"))


def test_failures_are_told_once_with_their_cause_and_the_next_up_goes_on(project: SmallProject) -> None:
    project.configure(**{"raise": "oops"})
    told = project.run("up", status=1)
    assert "KeyError: 'oops'" in told
    assert "Traceback" not in told
    assert "Traceback" in (project.root / ".state/stacks/t/failure.log").read_text()

    project.configure(fail="there is no plan x9")
    told = project.run("up", status=1)
    assert told.count("there is no plan x9") == 1
    assert "broken (Device):" in told
    assert "Traceback" not in told
    drawn = all_text(Path(project.run("timeline").strip()).read_text())
    assert "✕ failed after" in drawn and "there is no plan x9" in drawn

    project.configure()
    assert "was interrupted or failed" in project.run("up")
    drawn = all_text(Path(project.run("timeline").strip()).read_text())
    assert "✓ succeeded after" in drawn and "reachable" in drawn


def test_a_lab_stacks_bad_settings_are_told_before_the_lab_is_made(project: SmallProject) -> None:
    project.configure(lab={"machines": "simulated"}, wrokers={"count": 1})
    told = project.run("up", status=1)
    assert "metal-ipi:wrokers" in told and "did you mean 'workers'?" in told
    assert not (project.root / ".state").exists()


@pytest.mark.parametrize("command", ["output", "kubeconfig"])
def test_output_without_a_stack_says_so_and_prints_nothing(project: SmallProject, command: str) -> None:
    out, err = project.ended(command, status=1)
    assert out == "" and "there is no stack 't'" in err


def test_a_reader_that_leaves_does_not_stop_the_run(project: SmallProject) -> None:
    process = project.start("up")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert len(project.metal.devices()) == 2


def test_a_rehearsal_works_without_any_network(project: SmallProject) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may cut the network off here")
    alone = ("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    assert "4 to create" in project.run("preview", *alone)
    assert not (project.root / ".state").exists()
