"""Which machines and which installer a lab stack gets."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Timer

import pytest

from tools import choices
from tools.choices import Asked
from tools.containment import RunLock
from tools.engine import Engine
from tools.errors import StackError
from tools.facility import Wanted
from tools.layout import Layout
from tools.screen import Screen
from tools.session import Session

DOCUMENT = {"config": {"metal-ipi:lab": {"machines": "libvirt"}, "metal-ipi:openshiftVersion": "4.19.0-lab"}}
NOTHING = Asked()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(root=tmp_path, stack="lab", states=tmp_path / "states")


@pytest.fixture
def made(layout: Layout) -> Layout:
    """A stack that an `up` has made: of simulated machines, by the real installer."""
    checkpoint = layout.backend / ".pulumi/stacks/metal-ipi/lab.json"
    for path, text in ((layout.machines, "simulated\n"), (layout.installer, "real\n"), (checkpoint, "{}")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert layout.exists
    return layout


def test_the_command_line_counts_before_the_stack_file(layout: Layout) -> None:
    assert choices.machines(layout, "libvirt", NOTHING, DOCUMENT) == "libvirt"
    assert choices.machines(layout, "libvirt", Asked(machines="simulated"), DOCUMENT) == "simulated"
    assert choices.installer(layout, NOTHING, DOCUMENT) == "stand-in"
    assert choices.installer(layout, Asked(installer="real"), DOCUMENT) == "real"


def test_the_lab_of_a_stack(layout: Layout) -> None:
    found = choices.lab(layout, Asked(machines="simulated"), DOCUMENT)
    assert found == Wanted(
        machines="simulated",
        installer="stand-in",
        rack=0,
        kube_vip=False,
        metallb=False,
        day_two=False,
        small_kubernetes=False,
    )
    assert found is not None and found.options == ["--machines", "simulated", "--openshift", "stand-in"]
    assert choices.lab(layout, NOTHING, {"config": {}}) is None, "a real facility's"
    services = {"metal-ipi:serviceAddresses": {"type": "metallb-l2", "install": False}}
    announcing = choices.lab(layout, NOTHING, {"config": {**DOCUMENT["config"], **services}})
    assert announcing is not None and announcing.metallb


def test_a_hub_stands_beside_whatever_the_lab_has(layout: Layout) -> None:
    document = {"config": {**DOCUMENT["config"], "metal-ipi:provisioning": {}}}
    found = choices.lab(layout, NOTHING, document)
    assert found is not None and found.rack is None


def test_what_exists_stays_what_it_is(made: Layout) -> None:
    assert choices.machines(made, "libvirt", NOTHING, DOCUMENT) == "simulated"
    assert choices.installer(made, NOTHING, DOCUMENT) == "real"
    assert choices.installer(made, Asked(installer="real"), DOCUMENT) == "real"
    with pytest.raises(StackError, match="machines are simulated ones, not libvirt"):
        choices.machines(made, "libvirt", Asked(machines="libvirt"), DOCUMENT)
    with pytest.raises(StackError, match="made by the real installer, not by the stand-in one"):
        choices.installer(made, Asked(installer="stand-in"), DOCUMENT)


def test_what_there_is_not_is_refused(layout: Layout) -> None:
    with pytest.raises(StackError, match="no lab machines of kind 'paper'"):
        choices.machines(layout, "libvirt", Asked(machines="paper"), DOCUMENT)
    with pytest.raises(StackError, match="no installer 'agent' in the lab"):
        choices.installer(layout, Asked(installer="agent"), DOCUMENT)


def test_an_up_that_waits_for_the_down_before_it_notes_what_it_is_made_of(made: Layout) -> None:
    down = RunLock(made.lock)
    down.acquire()

    def end() -> None:
        shutil.rmtree(made.state)
        down.remove()

    up = Session(made, Engine(path=Path("pulumi"), version="v3"), lambda: None, Screen())
    Timer(0.3, end).start()
    with pytest.raises(StackError, match=r"Pulumi\.lab\.yaml"):
        up.run("up", ("libvirt", "stand-in"))
    assert (made.machines.read_text(), made.installer.read_text()) == ("libvirt", "stand-in")
