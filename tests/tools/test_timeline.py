"""What an `up` records, and how it is drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import golden
from tests.tools.picture_resources import event, machines, urn
from tests.tools.svg_geometry import all_text, muddled, texts
from tools.errors import StackError
from tools.layout import Layout
from tools.pictures import commands, record, timeline
from tools.pictures.record import Run, Step
from tools.progress import GATE, Progress

_DEVICE = "equinix-metal:index/device:Device"
_CHECK = "command:local:Command"
_BEGAN = datetime(2026, 11, 22, 10, 42, tzinfo=UTC)


def _step(name: str, type_: str, begin: float, end: float | None, told: str = "", *, failed: bool = False) -> Step:
    return Step(name=name, type=type_, op="create", begin=begin, end=end, failed=failed, told=told)


def _run(*, failed: bool = False) -> Run:
    answers = "lab-control-plane-0.lab.facility.test after 21.5 s, lab-worker-0.lab.facility.test after 30.0 s"
    steps = [
        _step("boot-scripts", "metal-ipi:index:Artifacts", 1, 3),
        _step("identities", "metal-ipi:index:Artifacts", 2, 4),
        _step("lab-bootstrap", "metal-ipi:index:EphemeralMachine", 5, 40),
        _step("lab-control-plane-0-device", _DEVICE, 5, 45),
        _step("lab-worker-0-device", _DEVICE, 5, 50),
        _step("nodes-reachable", GATE, 50, 80, answers),
        _step("control-plane-checks-0", _CHECK, 80, 84),
        _step("worker-checks-0", _CHECK, 80, 82, "wrong platform", failed=failed),
        _step("bootstrap-complete", GATE, 80, None if failed else 140),
        *([] if failed else [_step("bootstrap-removal-removed", "metal-ipi:index:Removal", 141, 150)]),
    ]
    return Run(stack="lab", began=f"{_BEGAN:%Y-%m-%d %H:%M} UTC", seconds=150, failed=failed, steps=tuple(steps))


@pytest.mark.parametrize("failed", [False, True], ids=["succeeded", "failed"])
def test_a_run_looks_as_it_did(failed: bool) -> None:
    picture = timeline.svg(_run(failed=failed))
    assert muddled(picture) == []
    golden.check(f"timeline-{'failed' if failed else 'succeeded'}.svg", picture)


def test_many_machines_are_few_rows_and_failed_ones_among_them() -> None:
    steps = [_step(f"w-{n}-device", _DEVICE, 1, 5 + n / 100, failed=n == 3) for n in range(1000)]
    picture = timeline.svg(replace(_run(), steps=tuple(steps), failed=True))
    shown = [text for text, _ in texts(picture)]
    assert "w-3" in shown and "987 more" in shown and len(shown) < 60
    assert muddled(picture) == []


def test_an_up_that_changes_nothing_says_so() -> None:
    assert "nothing was changed" in all_text(timeline.svg(replace(_run(), steps=())))


_TEXT = st.one_of(st.text(max_size=80), st.sampled_from(["</svg><script>", "\x00\u202e", "W" * 80]))
_SECONDS = st.floats(0, 90_000)
_STEPS = st.builds(
    Step, name=_TEXT, type=st.one_of(st.sampled_from([GATE, _DEVICE, _CHECK]), _TEXT), op=_TEXT, begin=_SECONDS,
    end=st.none() | _SECONDS, failed=st.booleans(), told=_TEXT,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(_TEXT, _SECONDS, st.lists(_STEPS, max_size=8))
@example("", 0.0, [_step("", GATE, 19670, 15833), _step("", GATE, 40164, None)])
def test_any_names_and_times_stay_in_their_places(name: str, seconds: float, steps: list[Step]) -> None:
    ordered = tuple(replace(each, end=None if each.end is None else each.begin + each.end) for each in steps)
    picture = timeline.svg(Run(stack=name, began="", seconds=seconds, failed=False, steps=ordered))
    assert muddled(picture) == []
    assert "<script" not in picture


def test_the_record_of_an_operation() -> None:
    now = [10.0]
    progress = Progress(clock=lambda: now[0])
    (device,) = machines(1)
    gate = urn(GATE, "nodes-reachable")
    state = {"custom": True, "outputs": {"observed": "t-worker-0 after 2.0 s"}}
    progress.handle(event(device["urn"], _DEVICE, "create", "resourcePreEvent", new={"custom": True}))
    progress.handle(event(gate, GATE, "create", "resourcePreEvent", new={"custom": True}))
    now[0] = 12.5
    progress.handle(event(gate, GATE, "create", new=state))
    progress.errors[device["urn"]] = ["no more hunter2\nand much more"]
    progress.steps[device["urn"]].failed = True

    run = record.of_progress(progress, "t", _BEGAN, 9.0, lambda text: text.replace("hunter2", "[secret]"), failed=True)

    assert (run.began, run.seconds) == ("2026-11-22 10:42 UTC", 3.5)
    assert run.steps == (
        _step("t-worker-0-device", _DEVICE, 1.0, None, "no more [secret]", failed=True),
        _step("nodes-reachable", GATE, 1.0, 3.5, "t-worker-0 after 2.0 s"),
    )
    assert record.read(record.write(run)) == run


# --- the command ---


def _layout(root: Path) -> Layout:
    (root / "stacks").mkdir()
    (root / "stacks" / "Pulumi.lab.yaml").write_text("config: {}\n")
    return Layout(root=root, stack="lab")


def test_without_an_up_there_is_no_timeline(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"there is no timeline(.|\n)*why: (.|\n)*remedy: `make up STACK=lab`"):
        commands.timeline(_layout(tmp_path))


def test_a_stack_that_is_none_is_named_as_everywhere(tmp_path: Path) -> None:
    layout = replace(_layout(tmp_path), stack="other")
    for command in (commands.timeline, commands.topology):
        with pytest.raises(StackError, match="there is no stack 'other'"):
            command(layout)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"steps": [{}]}', '{"steps": []}'])
def test_a_record_that_is_broken_is_named(tmp_path: Path, text: str) -> None:
    layout = _layout(tmp_path)
    layout.timeline.parent.mkdir(parents=True)
    layout.timeline.write_text(text)
    with pytest.raises(StackError, match=r"cannot be read(.|\n)*timeline\.json"):
        commands.timeline(layout)


def test_pictures_go_where_they_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = _layout(tmp_path)
    layout.timeline.parent.mkdir(parents=True)
    layout.timeline.write_text(record.write(_run()))
    monkeypatch.delenv("OUT", raising=False)
    assert commands.timeline(layout) == tmp_path / ".state" / "pictures" / "lab-timeline.svg"
    monkeypatch.setenv("OUT", str(tmp_path / "docs" / "up.svg"))
    assert commands.timeline(layout).read_text() == timeline.svg(_run())
    monkeypatch.setenv("OUT", str(tmp_path))
    with pytest.raises(StackError, match=r"cannot be written(.|\n)*OUT=<file>"):
        commands.timeline(layout)


def test_the_topology_of_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = _layout(tmp_path)
    file = layout.backend / ".pulumi" / "stacks" / "metal-ipi" / "lab.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": machines(2)}}}))
    monkeypatch.setenv("OUT", str(tmp_path / "it.svg"))
    assert "t-worker-1" in all_text(commands.topology(layout).read_text())
