"""The bench's own arithmetic, copying and command line; what it measures is not run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.bench.__main__ import WORKERS, arguments
from tests.bench.figures import FIGURES
from tests.bench.measure import BenchError, alternate, compared, slope, timed
from tests.bench.project import ProjectCopy, ignore_own_variables
from tests.bench.spent import spent


def test_a_ratio_is_of_medians_and_tells_whether_the_goal_is_met() -> None:
    line = compared("preview", [9.0, 2.5, 2.4], [2.0, 1.9, 2.2], goal=1.25, workers=5, resources=53)
    assert line == {
        "figure": "preview", "workers": 5, "resources": 53, "seconds": 2.5, "baseline_seconds": 2.0, "ratio": 1.25,
        "goal": 1.25, "met": True,
    }  # fmt: skip


def test_rounding_does_not_meet_a_goal_and_a_figure_without_one_has_no_verdict() -> None:
    line = compared("preview", [1.254], [1.0], goal=1.25)
    assert (line["ratio"], line["met"]) == (1.25, False)
    assert compared("up_simulated", [6.0], [2.0]) == {
        "figure": "up_simulated", "seconds": 6.0, "baseline_seconds": 2.0, "ratio": 3.0,
    }  # fmt: skip


def test_resources_per_worker_leave_out_what_is_there_once() -> None:
    line = slope("resources_per_worker", {1: 41, 100: 338, 5: 53}, goal=3)
    assert (line["per_worker"], line["met"]) == (3.0, True)
    assert line["resources"] == {"1": 41, "5": 53, "100": 338}
    assert slope("resources_per_worker", {1: 41, 100: 339}, goal=3)["met"] is False


def test_pairs_are_measured_in_turn() -> None:
    order: list[str] = []

    def run(name: str) -> float:
        order.append(name)
        return float(len(order))

    each = alternate(lambda: run("ours"), lambda: run("bare"), 3, report=lambda text: None)
    assert order == ["ours", "bare"] * 3
    assert each == ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])


def test_a_process_is_timed_and_heard() -> None:
    run = timed([sys.executable, "-c", "import time; time.sleep(0.2); print('done')"], cwd=Path(), env={}, limit=20)
    assert run.out == "done\n"
    assert 0.2 <= run.seconds < 20


@pytest.mark.programs
def test_the_processor_time_of_a_process_and_of_what_it_started(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    engine = tmp_path / "pulumi"
    engine.symlink_to(Path(sys.executable).resolve())
    program = f"import subprocess\n{burn}\nsubprocess.run([{str(engine)!r}, '-c', {burn!r}], check=True)"
    run = timed([sys.executable, "-c", program], cwd=Path(), env={}, limit=60)
    assert 0.8 <= run.cpu_seconds < 3
    assert 0.2 <= run.engine_cpu_seconds < run.cpu_seconds - 0.3


def test_what_the_processes_of_a_namespace_have_spent(tmp_path: Path) -> None:
    fields = ["S", *"0" * 10, "100", "20", "3", "7", *"9" * 30]
    for number, space, name in ((1, "1", "init"), (22, "7", "first"), (23, "7", "a (name) of 3 words")):
        (tmp_path / str(number) / "ns").mkdir(parents=True)
        (tmp_path / str(number) / "ns" / "pid").symlink_to(f"pid:[{space}]")
        (tmp_path / str(number) / "stat").write_text(f"{number} ({name}) {' '.join(fields)}\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "24").mkdir()
    assert spent("pid:[7]", tmp_path) == 260 / os.sysconf("SC_CLK_TCK")


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(BenchError, match=r"status 3\n(.|\n)*no such thing"):
        timed([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"], cwd=Path(), env={}, limit=20)


def test_a_process_that_takes_too_long_is_ended() -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('asked to end')))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(BenchError, match=r"more than 0 s\nready\nasked to end"):
        timed([sys.executable, "-c", program], cwd=Path(), env={}, limit=0.4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small repository: one committed file, a new one, an ignored one, a deleted one, a stack and a state."""
    root = tmp_path / "source"
    stack = {"config": {"metal-ipi:clusterName": "lab", "metal-ipi:workers": {"count": 2}}}
    texts = {
        ".gitignore": ".state/\n.venv/\n",
        "committed.py": "",
        "deleted.py": "",
        "stacks/Pulumi.lab.yaml": yaml.safe_dump(stack),
        ".state/lab/facts.json": "{}",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    (root / "deleted.py").unlink()
    (root / "new.py").write_text("")
    return root


def test_a_copy_holds_what_a_commit_would(source: Path, tmp_path: Path) -> None:
    copy = ProjectCopy(tmp_path / "copy", source)
    assert sorted(path.name for path in copy.root.iterdir()) == [
        ".gitignore", ".venv", "committed.py", "new.py", "stacks",
    ]  # fmt: skip
    assert (copy.root / ".venv").readlink() == Path(sys.prefix)


def test_a_stack_is_resized_in_the_copy_only(source: Path, tmp_path: Path) -> None:
    copy = ProjectCopy(tmp_path / "copy", source)
    before = (source / "stacks" / "Pulumi.lab.yaml").read_text()
    assert copy.resize("lab", 25) == "lab-25"
    resized = yaml.safe_load((copy.root / "stacks" / "Pulumi.lab-25.yaml").read_text())
    assert resized["config"] == {"metal-ipi:clusterName": "lab", "metal-ipi:workers": {"count": 25}}
    assert (copy.root / "stacks" / "Pulumi.lab.yaml").read_text() == before
    assert [path.name for path in (source / "stacks").iterdir()] == ["Pulumi.lab.yaml"]


def test_what_is_measured_does_not_hear_of_the_callers_variables() -> None:
    environment = {"PATH": "/bin", "STACK": "da11", "MAKEFLAGS": "-s", "PULUMI_HOME": "/x", "HOME": "/home/user"}
    ignore_own_variables(environment)
    assert environment == {"PATH": "/bin", "HOME": "/home/user"}


def test_all_figures_are_measured_unless_some_are_chosen() -> None:
    assert arguments([]).figures == tuple(FIGURES)
    assert arguments([]).workers == WORKERS
    chosen = arguments(["--figures", "preview,up_libvirt", "--workers", "25,5"])
    assert (chosen.figures, chosen.workers) == (("preview", "up_libvirt"), (5, 25))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--figures", "preview,previews"], "no such figure: 'previews'; there are preview, resources_per_worker"),
        (["--figures", ""], "no such figure"),
        (["--workers", "0,5"], "at least 1, not 0"),
    ],
)
def test_a_wrong_choice_is_refused(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert told in capsys.readouterr().err
