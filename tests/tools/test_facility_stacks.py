"""The stacks of a facility, as commands go through them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.answers import stack_file
from tools import commands, facility_stacks, stackfile
from tools.automation import mend_backend
from tools.errors import RunFailed, StackError
from tools.facility_stacks import Pools
from tools.layout import ROOT, Layout

_POOLS = {"compute": ("pooled-worker-10", "pooled-worker-11"), "gpu": ("pooled-worker-20", "pooled-worker-21")}


def _document(**changes: Any) -> stackfile.Tree:
    tree = {**stack_file("pooled"), **changes}
    return {"config": {f"metal-ipi:{name}": value for name, value in tree.items()}}


def _layout(states: Path, **machines: list[str]) -> Layout:
    """A facility whose stacks have a state: by pool (`cluster`: the cluster's) their machines."""
    layout = Layout(root=ROOT, stack="pooled", states=states)
    for name, hostnames in machines.items():
        own = layout if name == "cluster" else layout.of_pool(name)
        file = own.backend / ".pulumi" / "stacks" / "metal-ipi" / f"{own.stack}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        type_ = "equinix-metal:index/device:Device"
        resources = [{"type": type_, "urn": f"urn:pulumi:s::p::{type_}::{each}-device"} for each in hostnames]
        file.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))
    return layout


def test_stacks_of_a_facility_share_what_the_engine_reads_them_from(tmp_path: Path) -> None:
    layout = _layout(tmp_path, cluster=[], gpu=[])
    pool = layout.of_pool("gpu")
    assert pool.cluster == layout and layout.cluster == layout
    shared, own = ("stack_file", "backend", "passphrase"), ("state", "lock", "project", "home", "running", "timeline")
    assert all(getattr(pool, name) == getattr(layout, name) for name in shared)
    assert all(getattr(pool, name) != getattr(layout, name) for name in own)
    assert pool.exists and layout.pools == ["gpu"] and not layout.of_pool("compute").exists
    assert set(layout.checkpoints()) == {"pooled", "pooled-gpu"}, "what `sweep` must not take for an orphan"


@pytest.mark.parametrize("pool", [None, "gpu"])
def test_a_stack_mends_its_own_files_and_its_history_and_no_other_stacks(tmp_path: Path, pool: str | None) -> None:
    layout = _layout(tmp_path, cluster=[], gpu=[], old=[])
    backend = layout.backend / ".pulumi"
    half = {
        stack: [f"stacks/metal-ipi/{stack}.json.1.tmp", f"history/metal-ipi/{stack}/{stack}-17.history.json.attrs"]
        for stack in ("pooled", "pooled-gpu", "pooled-old")
    }
    for name in [name for names in half.values() for name in names]:
        (backend / name).parent.mkdir(parents=True, exist_ok=True)
        (backend / name).touch()
    own = layout if pool is None else layout.of_pool(pool)
    mend_backend(own)
    left = {stack for stack, names in half.items() if all((backend / name).exists() for name in names)}
    assert left == half.keys() - {own.stack} and not any((backend / name).exists() for name in half[own.stack])


def test_pools_are_those_of_the_stack_file_and_those_that_are_left(tmp_path: Path) -> None:
    layout = _layout(tmp_path, cluster=["pooled-worker-0"], gpu=["pooled-worker-20"], old=["pooled-worker-90"])
    found = facility_stacks.pools_of(layout, _document())
    assert found == Pools(wanted=_POOLS, gone=["old"])
    assert facility_stacks.pools_of(layout, _document(workers={"count": 2})).wanted == {}
    with pytest.raises(StackError, match=r"workers\.pools\[0\]\.first"):
        facility_stacks.pools_of(layout, _document(workers={"pools": [{"name": "a", "first": -1, "count": 1}]}))


def test_a_machine_that_would_go_from_pool_to_pool_is_refused(tmp_path: Path) -> None:
    layout = _layout(tmp_path, cluster=[], old=["pooled-worker-20"])
    with pytest.raises(StackError, match="pooled-worker-20 of pool 'old' would move to pool 'gpu'"):
        facility_stacks.pools_of(layout, _document())


def test_a_facility_goes_down_whatever_the_stack_file_says_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, ran = _layout(tmp_path, cluster=[], old=["pooled-worker-20"]), list[str | None]()
    monkeypatch.setattr(commands, "_inner", lambda each, operation, *_, **__: ran.append(each.pool))
    for workers in ({"pools": [{"name": "a", "first": -1, "count": 1}]}, stack_file("pooled")["workers"]):
        with pytest.raises(StackError):
            commands.operate(layout, _document(workers=workers), "up", is_lab=False)
        assert not ran
        commands.operate(layout, _document(workers=workers), "down", is_lab=False)
        assert ran == ["old", None]
        ran.clear()


def test_all_stacks_are_previewed_and_shown_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, last = _layout(tmp_path, cluster=[], old=["pooled-worker-90"]), threading.Event()
    monkeypatch.setattr(facility_stacks, "available_mib", lambda: 64_000)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    failing = set[str]()

    def inner(each: Layout, operation: str, *_: Any, line: Callable[[str], None], **__: Any) -> None:
        assert operation == "preview"
        line(f"{each.stack} begins")
        if each.pool == "gpu":  # the last one ends first
            last.set()
        assert last.wait(30)
        line(f"{each.stack} ends")
        if each.stack in failing:
            raise SystemExit(7)

    monkeypatch.setattr(commands, "_inner", inner)
    commands.operate(layout, _document(), "preview", is_lab=False)
    said = capsys.readouterr()
    stacks = ["pooled", "pooled-compute", "pooled-gpu"]
    assert said.out.splitlines() == [f"{stack} {what}" for stack in stacks for what in ("begins", "ends")]
    told = ["pool old is not in the stack file any more: `up` takes it down", "pool compute", "pool gpu"]
    assert [line for line in said.err.splitlines() if line] == told
    # What comes after one that failed is not shown: it may have the same cause.
    failing.add("pooled-compute")
    with pytest.raises(SystemExit) as caught:
        commands.operate(layout, _document(), "preview", is_lab=False)
    assert caught.value.code == 7 and capsys.readouterr().out.splitlines()[-1] == "pooled-compute ends"


@pytest.mark.parametrize(("free", "at_once"), [(0, 1), (311, 1), (624, 2), (64_000, 2)])
def test_as_many_pools_are_at_work_as_memory_lets(free: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POOLS_AT_ONCE", raising=False)
    assert facility_stacks.at_once(_POOLS, free) == at_once
    assert facility_stacks.available_mib() > 0


@pytest.mark.parametrize(("wanted", "at_once"), [("1", 1), ("2", 2), ("100", 2)])
def test_no_more_pools_are_at_work_than_are_wanted(wanted: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLS_AT_ONCE", wanted)
    assert facility_stacks.at_once(_POOLS, 64_000) == at_once
    assert facility_stacks.at_once(_POOLS, 0) == 1


@pytest.mark.parametrize("wanted", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_pools_that_is_none_is_refused(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLS_AT_ONCE", wanted)
    with pytest.raises(StackError, match=f"POOLS_AT_ONCE is '{wanted}'"):
        facility_stacks.at_once(_POOLS, 64_000)


def test_a_pool_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    layout, done, both = _layout(tmp_path), set[str](), threading.Barrier(2, timeout=30)

    def run(each: Layout) -> None:
        both.wait()
        if each.pool == "gpu":
            raise SystemExit(1)
        done.add(each.stack)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facility_stacks, "available_mib", lambda: 64_000)
        with pytest.raises(RunFailed) as caught:
            facility_stacks.beside("up", layout, _POOLS, run)
    assert done == {"pooled-compute"}
    told = str(caught.value)
    assert "up of pool gpu of stack 'pooled' failed" in told and "pool compute succeeded" in told


def test_machines_to_make_anew_are_those_of_their_stacks() -> None:
    found = facility_stacks.replaced(Pools(wanted=_POOLS), "pooled-worker-0, pooled-worker-20 nonsense")
    assert found == {None: "pooled-worker-0 nonsense", "gpu": "pooled-worker-20"}
