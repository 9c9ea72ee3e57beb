"""kill -9 at any moment of `make up`: the next run finishes, or `make down` cleans up. Nothing twice, nothing lost.

Every round kills a run early, and the run that repairs it late; then `up` must finish, or `down` must leave nothing.
Points are told by what is seen (a step that the engine has begun or ended, what the API holds), not by time. By day
tests/tools/test_interrupted_runs.py kills runs of a small program.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tests.conftest import TOLD
from tests.end_to_end import processes
from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.processes import Process
from tests.end_to_end.project import Project, Run

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

Victim = Literal["engine", "driver", "everything"]
"""The engine alone; all that `make up` started, but not the lab; the lab too, as when the power fails."""
_PATIENCE = 240.0


@dataclass(frozen=True)
class Point:
    """When to kill."""

    kind: Literal["told", "begun", "devices", "keys", "gone"]
    value: str
    """A text on the screen; a resource whose creation the engine has noted as begun; how many objects the API has; a
    host name that the API had."""

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True)
class Kill:
    """What to kill, when."""

    victim: Victim
    point: Point


def _begun(name: str) -> Point:
    return Point("begun", name)


def _told(text: str) -> Point:
    return Point("told", text)


Round = tuple[Kill, Kill, Literal["up", "down"]]
"""What interrupts the installation, what the repair, and what then ends it."""
ROUNDS: tuple[Round, ...] = (
    (Kill("engine", _begun("keys")), Kill("driver", _begun("dns-api-records")), "up"),
    (Kill("everything", _told("starting the lab")), Kill("engine", _begun("dns-api-records")), "down"),
    (Kill("everything", Point("keys", "1")), Kill("engine", _begun("bootstrap-complete")), "up"),
    (Kill("engine", _begun("install-assets-create")), Kill("everything", _begun("bootstrap-complete")), "down"),
    (Kill("driver", _told("bootstrap-ignition (Artifacts)")), Kill("engine", _begun("worker-checks-0")), "down"),
    (Kill("driver", Point("devices", "3")), Kill("everything", _begun("bootstrap-removal-removed")), "up"),
    (Kill("everything", Point("devices", "6")), Kill("engine", _begun("bootstrap-removal-removed")), "down"),
    (Kill("engine", _told("lab-worker-0-device (Device)")), Kill("driver", Point("gone", "lab-bootstrap")), "up"),
    (Kill("driver", _told("lab-bootstrap (EphemeralMachine)")), Kill("everything", _begun("nodes-ready")), "down"),
    (Kill("everything", _told("dns-api-records (DnsRecords)")), Kill("engine", _begun("install-complete")), "up"),
)  # fmt: skip


@dataclass
class Watch:
    """What is seen of a run, as cheaply as it can be looked at again and again."""

    project: Project
    run: Run
    _read: tuple[int, Any] | None = None

    def reached(self, point: Point) -> bool:
        """Whether the run is where it is to be killed."""
        if point.kind == "told":
            return point.value in self.run.printed()
        if point.kind == "begun":
            latest = self._checkpoint().get("checkpoint", {}).get("latest") or {}
            pending: list[dict[str, Any]] = latest.get("pending_operations") or []
            begun = [each["resource"]["urn"] for each in pending if each["type"] == "creating"]
            ended = [each["urn"] for each in latest.get("resources") or []]  # it was too fast to be seen
            return any(urn.endswith(f"::{point.value}") for urn in begun + ended)
        devices = self.devices()
        if point.kind == "keys":
            return len(self.project.account().get("keys", [])) >= int(point.value)
        if point.kind == "gone":
            return "lab-control-plane-0" in devices and point.value not in devices
        return len(devices) >= int(point.value)

    def devices(self) -> list[str]:
        """The host names of the devices that are not being released."""
        found = self.project.account().get("devices", [])
        return [device["hostname"] for device in found if device["state"] != "deprovisioning"]

    def _checkpoint(self) -> dict[str, Any]:
        path = self.project.checkpoint
        try:
            version = path.stat().st_mtime_ns
            if self._read is None or self._read[0] != version:
                self._read = (version, json.loads(path.read_text()))
        except (FileNotFoundError, ValueError):
            return {}  # not there yet, or being written: it is looked at again
        return self._read[1]


@dataclass
class Row:
    """A line of the table."""

    kill: Kill
    then: str
    reached: float = 0.0
    outcome: str = "not reached"
    seconds: float = 0.0


def test_kill_points(
    project: Project,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[Row] = []
    started = time.monotonic()
    try:
        for number, (first, second, end) in enumerate(ROUNDS):
            project.configure(lab={"kubernetes": "real" if number % 3 == 2 else "small"})
            for kill, then in ((first, "up, killed below"), (second, end)):
                rows.append(Row(kill, then))
                _kill(project, rows[-1])
            began = time.monotonic()
            if end == "up":
                project.make("up")
                rows[-1].seconds = time.monotonic() - began
                assert_finished(project)
            _assert_nothing_is_ordered(project, monkeypatch)
            project.assert_down()
            rows[-1].seconds = rows[-1].seconds or time.monotonic() - began
            rows[-2].outcome = rows[-1].outcome = "converged" if end == "up" else "cleaned up"
    finally:
        record_property(f"{TOLD}kill points", _table(rows, time.monotonic() - started))
    assert len(rows) == 2 * len(ROUNDS)


def _assert_nothing_is_ordered(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the stack is down and the lab still up, the official client finds nothing in any project."""
    monkeypatch.setenv("KEEP_LAB", "1")
    project.make("down")
    monkeypatch.delenv("KEEP_LAB")
    assert project.supervisor() is None or project.listing() == {}


def _kill(project: Project, row: Row) -> None:
    """Run `make up` to a point and kill there; nothing of it may live on."""
    run = project.start("up")
    watch = Watch(project, run)
    run.until(lambda: watch.reached(row.kill.point), str(row.kill.point), _PATIENCE)
    row.reached = time.monotonic() - run.started
    if row.kill.victim == "engine":
        victims = _engines(run)
        mortal = processes.family(run.pid)
    else:
        supervisor = project.supervisor()
        lab = processes.family(supervisor.pid) if supervisor else []
        victims = mortal = [each for each in processes.family(run.pid) if each not in lab]
        if row.kill.victim == "everything":
            victims = mortal = [*victims, *lab]
    row.outcome = "killed"
    processes.kill(victims)
    done = run.wait(60)
    assert done.status != 0, done.text
    left = processes.survivors(mortal)
    assert not left, left
    devices = watch.devices()
    assert len(devices) <= 6, devices


def _engines(run: Run) -> list[Process]:
    found: list[Process] = []

    def look() -> bool:
        found[:] = [each for each in processes.family(run.pid) if each.program == "pulumi"]
        return bool(found)

    run.until(look, f"an engine below {run.pid}", _PATIENCE)
    return found


def _table(rows: list[Row], seconds: float) -> str:
    lines = [f"{'kill -9 of':11} {'at':48} {'after':>6}  {'then':17} {'took':>6}  outcome"]
    for row in rows:
        took = f"{row.seconds:.0f} s" if row.seconds else ""
        lines.append(
            f"{row.kill.victim:11} {row.kill.point!s:48} {row.reached:4.1f} s  {row.then:17} {took:>6}  {row.outcome}"
        )
    return "\n".join([*lines, f"{len(rows)} kill points in {seconds:.0f} s"])
