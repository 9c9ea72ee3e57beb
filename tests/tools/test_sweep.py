"""What a sweep takes for an orphan, what it leaves, and what it wants to hear before it deletes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from tests.tools.world.metal import PROJECT, TOKEN, MetalServer
from tools import sweep
from tools.errors import RunFailed, StackError
from tools.known import Known, known
from tools.layout import Layout
from tools.metal import Found, MetalApi, Resource
from tools.screen import Screen
from tools.sweep import Wanted

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOTHING = Known()
LAB = Known(
    stacks=frozenset({"lab"}), ids={"in state": "lab", "request": "lab", "its project": "lab"}, runs={"1": "lab"}
)
MARKS = ("metal-ipi", "metal-ipi:stack=ci", "metal-ipi:cluster=c.test")


def thing(id: str, stack: str = "ci", hours: float | None = 5, **more: Any) -> Resource:
    created = None if hours is None else NOW - timedelta(hours=hours)
    values: dict[str, Any] = {"kind": "machine", "project": "p", "marks": {"stack": stack, "cluster": "c.test"}}
    return Resource(id=id, name=id, created=created, **{**values, **more})


def wanted(**environment: str) -> Wanted:
    return Wanted.from_(environment)


def kept(*resources: Resource, here: Known = NOTHING, others: int = 0, **environment: str) -> dict[str, str]:
    """Id → why it stays, of things and (with kind `project`) projects."""
    found = Found(
        resources=tuple(each for each in resources if each.kind != "project"),
        projects=tuple(each for each in resources if each.kind == "project"),
        others={"p": others},
    )
    return {each.resource.id: each.kept for each in sweep.judge(found, wanted(**environment), here, NOW)}


def test_what_is_old_and_of_no_stack_here_is_an_orphan() -> None:
    things = (thing("old"), thing("new", hours=0.5), thing("ageless", hours=None))
    assert kept(*things, here=LAB) == {"old": "", "new": "too young", "ageless": "its age is not known"}
    assert kept(*things, AGE="10m")["new"] == "" and kept(*things, AGE="1d")["old"] == "too young"
    assert kept(*things, AGE="0h")["ageless"] == ""


@pytest.mark.parametrize("of", ["", "lab"])
def test_what_a_state_here_knows_is_never_an_orphan(of: str) -> None:
    marks = {"stack": "lab", "cluster": "c.test"}
    things = (
        thing("in state", "lab"),
        thing("of a request", "lab", request="request"),
        thing("being ordered", marks={**marks, "run": "1"}),
        thing("a key", "lab"),
        thing("lost", marks={**marks, "run": "2"}),
    )
    assert kept(*things, here=LAB, OF=of, AGE="0m") == {
        "in state": "the state of stack lab has it",
        "of a request": "the state of stack lab has it",
        "being ordered": "of stack lab, which is up: its next run knows",
        "a key": "may be of stack lab, which has its state here",
        "lost": "",
    }
    project = thing("its project", kind="project", marks={})
    assert kept(project, thing("x", project="its project"), here=LAB)["its project"] == "the state of stack lab has it"


def test_stacks_that_are_named_and_no_others() -> None:
    assert kept(thing("mine", "lab"), thing("theirs"), OF="lab") == {
        "mine": "", "theirs": "of another stack than asked for",
    }  # fmt: skip


def test_a_project_is_ours_when_all_in_it_is_and_goes() -> None:
    project = thing("p", kind="project", marks={})
    assert kept(project, thing("a"))["p"] == ""
    assert kept(project)["p"] == "nothing in it shows that it is ours"
    assert kept(project, thing("a"), others=1)["p"] == "holds things that are not ours"
    assert kept(project, thing("a"), thing("b", hours=0))["p"] == "holds things that stay"
    assert kept(thing("p", kind="project", marks={}, hours=0), thing("a"))["p"] == "too young"


@pytest.mark.parametrize(
    "environment",
    [
        {"SWEEP": "all"},
        {"AGE": "soon"},
        {"AGE": "2w"},
        {"OF": "ci-1,ci-2"},
        {"CONFIRM": "yes"},
        {"SWEEP": "delete"},
        {"SWEEP": "delete", "CONFIRM": "5d41402a"},
        {"SWEEP": "delete", "CONFIRM": "yes"},
    ],
)
def test_what_is_asked_for_wrongly(environment: dict[str, str]) -> None:
    with pytest.raises(StackError, match=r"remedy"):
        wanted(**environment)


def test_ages() -> None:
    assert [wanted(AGE=age).age for age in ("90m", "2h", "1d", "3")] == [
        timedelta(minutes=90), timedelta(hours=2), timedelta(days=1), timedelta(hours=3),
    ]  # fmt: skip
    assert wanted().age == timedelta(hours=1) and not wanted().delete


@pytest.fixture
def metal() -> Iterator[MetalServer]:
    with MetalServer() as server:
        yield server


def swept(metal: MetalServer, named: str | None = None, here: Known = NOTHING, **environment: str) -> str:
    out = io.StringIO()
    api = MetalApi(TOKEN, url=metal.url, patience=5)
    projects = set[str]() if named else {PROJECT}
    sweep.run(
        api,
        Screen(Console(file=out, width=200)),
        projects=projects,
        named=named,
        wanted=wanted(**environment),
        here=lambda: here,
    )
    return out.getvalue()


def test_orphans_are_deleted_once_exactly_they_were_confirmed(metal: MetalServer) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=3)
    metal.add("orphan", *MARKS, created=long_ago)
    other = metal.add("web", "web", created=long_ago)
    with pytest.raises(RunFailed, match="1 things of another checkout or of a lost state, by name of: ci") as listed:
        swept(metal)
    assert "make sweep OF=<stack>" in str(listed.value) and "CONFIRM" not in str(listed.value)
    with pytest.raises(RunFailed, match="1 orphans of stack ci, if no other checkout has it up") as listed:
        swept(metal, OF="ci")
    code = str(listed.value).partition("CONFIRM=")[2][:8]
    with pytest.raises(RunFailed, match="nobody confirmed"):
        swept(metal, OF="ci", SWEEP="delete")
    second = metal.add("another", *MARKS, created=long_ago)
    with pytest.raises(RunFailed, match=f"CONFIRM={code} was for others"):
        swept(metal, OF="ci", SWEEP="delete", CONFIRM=code)
    assert len(metal.devices) == 3
    del metal.devices[second]
    assert "1 orphans deleted" in swept(metal, OF="ci", SWEEP="delete", CONFIRM=code)
    assert list(metal.devices) == [other]
    assert "no orphans (0 things of ours stay)" in swept(metal)


def test_a_live_stack_loses_nothing_although_it_is_named(metal: MetalServer) -> None:
    live = metal.add("w", *MARKS, "metal-ipi:run=1")
    lost = metal.add("w", *MARKS, "metal-ipi:run=2")
    here = Known(stacks=frozenset({"ci"}), runs={"1": "ci"})
    assert "1 orphans deleted" in swept(metal, here=here, OF="ci", SWEEP="delete", CONFIRM="yes", AGE="0m")
    assert list(metal.devices) == [live] and metal.deleted == [lost]


def test_projects_that_a_stack_made_are_found_by_name_and_mark(metal: MetalServer) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=3)
    empty, other = metal.add_project("ours", long_ago), metal.add_project("theirs", long_ago)
    assert "no orphans" in swept(metal, named="ours")
    assert set(metal.projects) == {empty, other}
    metal.add_address("192.0.2.1", *MARKS)
    assert "2 orphans deleted" in swept(metal, named="ours", OF="ci", SWEEP="delete", CONFIRM="yes", AGE="0m")
    assert set(metal.projects) == {other} and metal.addresses == {}


def test_what_does_not_go_is_a_failure(metal: MetalServer) -> None:
    metal.stuck.add(metal.add("orphan", *MARKS))
    with pytest.raises(Exception, match="of 1 things 1 could not be deleted"):
        MetalApi(TOKEN, url=metal.url, patience=0.3).delete(
            MetalApi(TOKEN, url=metal.url).find([PROJECT]).resources, lambda text: None
        )


def test_what_the_states_of_this_checkout_know(tmp_path: Any) -> None:
    layout = Layout(root=tmp_path, stack="lab")
    assert known(layout) == NOTHING
    resources = [
        {"type": "metal-ipi:index:ClusterKeys", "id": "1", "urn": "k"},
        {"type": "metal-ipi:index:EphemeralMachine", "id": "e", "urn": "e", "outputs": {"machineId": "d"}},
    ]
    states: dict[str, Any] = {"lab": {"resources": resources}, "da11": None}
    for stack, latest in states.items():
        file = Layout(root=tmp_path, stack=stack).backend / ".pulumi" / "stacks" / "metal-ipi" / f"{stack}.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"version": 3, "checkpoint": {"stack": stack, "latest": latest}}))
    (tmp_path / ".state" / "stacks" / "gone").mkdir()
    found = known(layout)
    assert found.stacks == {"lab", "da11"} and found.runs == {"1": "lab"}
    assert found.ids == dict.fromkeys(("1", "e", "d"), "lab")
    Layout(root=tmp_path, stack="da11").known()["da11"].write_text("{")
    with pytest.raises(RunFailed, match=r"da11\.json cannot be read"):
        known(layout)
