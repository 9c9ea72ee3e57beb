"""Stacks that stand on a hub's: which one that is, and that it stays as long as they are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools import commands
from tools.choices import Asked
from tools.containment import at_work
from tools.errors import StackError
from tools.facility import Facility
from tools.layout import Layout

_FILES = {
    "hub": "config: {metal-ipi:lab: {machines: simulated}, metal-ipi:provisioning: {}}",
    "ours": "config: {metal-ipi:lab: {machines: simulated, hub: hub}}",
    "wrong": "config: {metal-ipi:lab: {machines: simulated, hub: ours}}",
    "nobody": "config: {metal-ipi:lab: {machines: simulated, hub: none}}",
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The hub's; it is up, and so is one that has its servers from it."""
    it = Layout(root=tmp_path, stack="hub")
    it.stack_file.parent.mkdir()
    for name, text in _FILES.items():
        replace(it, stack=name).stack_file.write_text(text)
    for name in ("hub", "ours"):
        stack = replace(it, stack=name)
        for path in (stack.backend / f".pulumi/stacks/metal-ipi/{name}.json", stack.machines):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    return it


def test_it_stays_as_long_as_others_have_servers_from_it(layout: Layout) -> None:
    with pytest.raises(StackError) as caught:
        commands.down(layout, Asked())
    assert "these stacks have servers of its Ironic:  ours" in str(caught.value)
    assert "`make down STACK=ours` first" in str(caught.value)


@pytest.mark.parametrize(
    ("stack", "why"), [("wrong", "cannot get its servers from stack 'ours'"), ("nobody", "there is no stack 'none'")]
)
def test_another_stack_is_none(layout: Layout, stack: str, why: str) -> None:
    with pytest.raises(StackError, match=why):
        commands.up(replace(layout, stack=stack), Asked())


def test_the_lab_stays_while_another_command_is_at_work_in_it(
    layout: Layout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have begun, and have no state yet."""
    ended = list[Path]()
    monkeypatch.setattr(Facility, "down", lambda facility: ended.append(facility.layout.lab))
    alone = replace(layout, root=layout.root / "other", stack="wrong")
    alone.stack_file.parent.mkdir(parents=True)
    alone.stack_file.write_text("config: {metal-ipi:lab: {machines: simulated}}")
    with at_work(alone.lab.parent):
        commands.down(alone, Asked())
    assert not ended and "the lab stays, because another command uses it" in capsys.readouterr().err
    commands.down(alone, Asked())
    assert ended == [alone.lab] and not alone.lab.parent.exists()
