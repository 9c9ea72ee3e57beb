"""The bench's own arithmetic, its clock and its command line; what it measures is not run here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench.__main__ import arguments
from tests.bench.clusters import clusters, line
from tests.bench.measure import BenchError, compared, slope, timed
from tests.bench.project import ignore_own_variables
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


def test_many_clusters_are_told_per_cluster() -> None:
    rest = {"look_ms": 12.5, "cpu_seconds_per_hour": 360.0, "requests_per_minute": 100}
    alone = {"seconds": 50.0, "memory_mib": 100}
    told = {"seconds": 75.0, "first_seconds": 60.0, "gone_seconds": 9.0, "memory_mib": 140, "cpu_seconds": 200.0}
    found = line(5, alone, {**told, "requests": 1000, "plans": 60, "at_rest": rest}, 2)
    assert found["installing_at_once"] == 2
    assert (found["ratio"], found["memory_mib_per_cluster"]) == (1.5, 10.0)
    assert (found["cpu_seconds_per_cluster"], found["requests_per_cluster"]) == (40.0, 200)
    assert found["plans_per_cluster"] == 12.0
    assert found["at_rest"] == {
        "look_ms": 12.5, "cpu_seconds_per_cluster_and_hour": 72.0, "requests_per_cluster_and_minute": 20.0
    }  # fmt: skip


@pytest.mark.parametrize("count", [1, 67])
def test_a_number_of_clusters_that_the_lab_cannot_have_is_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=f"--clusters {count}: give 2 to 66"):
        next(clusters(count, tmp_path))


def test_clusters_for_which_there_is_no_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=12 << 30))
    with pytest.raises(BenchError, match=r"--clusters 50: they need 19 GiB of memory.*and 12 are free"):
        next(clusters(50, tmp_path))


@pytest.mark.programs
def test_the_processor_time_of_a_process_and_of_what_it_started(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.8: pass\nprint('done', flush=True)"
    engine = tmp_path / "pulumi"
    engine.symlink_to(Path(sys.executable).resolve())
    program = f"import subprocess\n{burn}\nsubprocess.run([{str(engine)!r}, '-c', {burn!r}], check=True)"
    run = timed([sys.executable, "-c", program], cwd=Path(), env={}, limit=60)
    assert run.out == "done\ndone\n"
    assert 1.6 <= run.cpu_seconds < 4
    assert 0.2 <= run.engine_cpu_seconds < run.cpu_seconds - 0.7


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


def test_what_is_measured_does_not_hear_of_the_callers_variables() -> None:
    environment = {"PATH": "/bin", "STACK": "da11", "MAKEFLAGS": "-s", "PULUMI_HOME": "/x", "HOME": "/home/user"}
    ignore_own_variables(environment)
    assert environment == {"PATH": "/bin", "HOME": "/home/user"}


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
