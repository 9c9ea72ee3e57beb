"""Events in, lines out."""

from __future__ import annotations

from typing import Any

from pulumi.automation import EngineEvent

from tools.display import waiting_lines
from tools.progress import Progress, plain
from tools.report import checks, nodes_table, phases, summary
from tools.screen import Redactor

GATE = "metal-ipi:index:Gate"
DEVICE = "equinix-metal:index/device:Device"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def event(kind: str, **data: Any) -> EngineEvent:
    return EngineEvent.from_json({kind: data, "sequence": 1, "timestamp": 1})


def step(kind: str, name: str, type_: str = DEVICE, op: str = "create", *, custom: bool = True) -> EngineEvent:
    urn = f"urn:pulumi:t::metal-ipi::{type_}::{name}"
    new = {"type": type_, "urn": urn, "custom": custom}
    return event(kind, metadata={"op": op, "urn": urn, "type": type_, "new": new})


def diagnostic(message: str, severity: str = "info", name: str = "", type_: str = DEVICE, **more: Any) -> EngineEvent:
    urn = f"urn:pulumi:t::metal-ipi::{type_}::{name}" if name else ""
    return event("diagnosticEvent", message=message, severity=severity, urn=urn, color="never", **more)


def run(progress: Progress, *events: EngineEvent) -> list[str]:
    return [line.text for one in events for line in progress.handle(one)]


def test_a_change_gets_one_line_when_it_is_done() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    assert run(progress, step("resourcePreEvent", "worker-0")) == []
    clock.now += 3
    assert run(progress, step("resOutputsEvent", "worker-0")) == ["  worker-0 (Device): created (3.0 s)"]


def test_components_providers_and_what_stays_the_same_get_none() -> None:
    progress = Progress(clock=Clock())
    for name, type_, op, custom in (
        ("part", "metal-ipi:cluster:Workers", "create", False),
        ("p", "pulumi:providers:x", "create", True),
        ("w", DEVICE, "same", True),
    ):
        first = step("resourcePreEvent", name, type_, op, custom=custom)
        assert run(progress, first, step("resOutputsEvent", name, type_, op, custom=custom)) == []
    assert progress.waiting() == []


def test_gates_are_waited_for_first_and_with_their_newest_status() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    run(progress, step("resourcePreEvent", "worker-0"), step("resourcePreEvent", "api-answers", GATE))
    run(progress, diagnostic("0 of 3", name="api-answers", type_=GATE, ephemeral=True))
    assert run(progress, diagnostic("2 of 3: worker-1 missing", name="api-answers", type_=GATE, ephemeral=True)) == []
    assert waiting_lines(progress.waiting(), clock.now + 35) == [
        "  waiting for gate api-answers, 35 s: 2 of 3: worker-1 missing",
        "  waiting for worker-0 (Device) 35 s",
    ]
    clock.now += 40
    assert run(progress, step("resOutputsEvent", "api-answers", GATE)) == ["  gate api-answers: passed after 40 s"]


def test_many_are_told_in_one_line() -> None:
    progress = Progress(clock=Clock())
    run(progress, *(step("resourcePreEvent", f"w{n}") for n in range(100)))
    (line,) = waiting_lines(progress.waiting(), 110.0)
    assert line.endswith("w3 (Device) 10 s; and 96 more")


def test_a_failure_is_told_once_and_its_consequences_not_at_all() -> None:
    progress = Progress(clock=Clock())
    stack = {"name": "metal-ipi-t", "type_": "pulumi:pulumi:Stack"}
    run(
        progress,
        step("resourcePreEvent", "w"),
        diagnostic("<{%reset%}>no such plan<{%reset%}>\n", "error", "w"),
        diagnostic("no such plan", "error", "w"),
        diagnostic("update failed", "error", **stack),
        step("resOpFailedEvent", "w"),
    )
    assert progress.failures() == [("w (Device)", "no such plan")]


def test_a_failure_without_a_message_is_still_named() -> None:
    progress = Progress(clock=Clock())
    run(progress, step("resourcePreEvent", "w"), step("resOpFailedEvent", "w"))
    assert progress.failures() == [("w (Device)", "create failed, without a message")]


def test_a_traceback_becomes_what_happened() -> None:
    trace = "Traceback (most recent call last):\n  File x\n    y\nKeyError: 'z'\n"
    assert plain(trace) == "KeyError: 'z'"
    assert plain(f"python inline source runtime error: 'z'\n{trace}") == "'z'"


def test_the_summary_says_no_changes_plainly() -> None:
    progress = Progress(clock=Clock())
    run(progress, event("summaryEvent", resourceChanges={"same": 41}))
    assert summary("up", progress, 2.4) == "up: no changes (41 resources unchanged; 2 s)"
    other = Progress(clock=Clock())
    run(other, event("summaryEvent", resourceChanges={"same": 40, "create": 3}))
    assert summary("up", other, 2.4) == "up: 3 created, 40 unchanged (2 s)"
    assert summary("preview", other, 2.4) == "preview: 3 to create, 40 unchanged (2 s)"


def test_phases_span_all_resources_of_a_kind() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    run(progress, step("resourcePreEvent", "a"))
    clock.now += 2
    run(progress, step("resourcePreEvent", "b"), step("resOutputsEvent", "a"))
    clock.now += 5
    run(progress, step("resOutputsEvent", "b"), step("resourcePreEvent", "api", GATE))
    clock.now += 1
    run(progress, step("resOutputsEvent", "api", GATE))
    assert phases(progress) == [("machines", 0.0, 7.0), ("gate api", 7.0, 1.0)]


def test_checks_name_what_is_not_in_order() -> None:
    found = [
        {"name": "ignition", "status": "ok"},
        {"name": "afterburn", "status": "skipped", "observed": "not built"},
        {"name": "hostname", "status": "failed", "observed": "saw x"},
    ]
    assert checks(found) == "ok 1/3; failed: hostname (saw x); skipped: afterburn (not built)"
    assert nodes_table([{"name": "n", "checks": found}], Redactor()) is not None
    assert nodes_table("[secret]", Redactor()) is None


def test_secrets_are_masked_line_by_line() -> None:
    redact = Redactor(["-----BEGIN-----\nAAAABBBBCCCC\n", "short"])
    assert redact("x AAAABBBBCCCC short -----BEGIN-----") == "x [secret] short -----BEGIN-----"
