"""What a sweep takes for an orphan, what it leaves, and what it wants to hear before it deletes."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from tests.tools.listed import NOW, PROJECT, Listed, thing
from tools import sweep
from tools.errors import RunFailed, StackError
from tools.layout import Layout
from tools.metal import Found, Resource
from tools.screen import Screen
from tools.states import Held, held
from tools.sweep import Wanted

NOTHING = Held()
LAB = Held(
    stacks=frozenset({"lab"}), ids={"in state": "lab", "request": "lab", "its project": "lab"}, runs={"1": "lab"}
)


def old(id: str, stack: str = "ci", hours: float | None = 5, **more: Any) -> Resource:
    """Something that was made hours ago; None: nobody says when."""
    return thing(id, stack=stack, created=None if hours is None else NOW - timedelta(hours=hours), **more)


def wanted(**environment: str) -> Wanted:
    return Wanted.from_(environment)


def kept(*resources: Resource, here: Held = NOTHING, others: int = 0, **environment: str) -> dict[str, str]:
    """Id → why it stays, of things and (with kind `project`) projects."""
    found = Found(
        resources=tuple(each for each in resources if each.kind != "project"),
        projects=tuple(each for each in resources if each.kind == "project"),
        others={"p": others},
    )
    return {each.resource.id: each.kept for each in sweep.judge(found, wanted(**environment), here, NOW)}


def test_what_is_old_and_of_no_stack_here_is_an_orphan() -> None:
    things = (old("old"), old("new", hours=0.5), old("ageless", hours=None))
    assert kept(*things, here=LAB) == {"old": "", "new": "too young", "ageless": "its age is not known"}
    assert kept(*things, AGE="10m")["new"] == "" and kept(*things, AGE="1d")["old"] == "too young"
    assert kept(*things, AGE="0h")["ageless"] == ""


@pytest.mark.parametrize("of", ["", "lab"])
def test_what_a_state_here_knows_is_never_an_orphan(of: str) -> None:
    things = (
        old("in state", "lab"),
        old("of a request", "lab", request="request"),
        old("being ordered", "lab", marks={"run": "1"}),
        old("a key", "lab"),
        old("lost", "lab", marks={"run": "2"}),
    )
    assert kept(*things, here=LAB, OF=of, AGE="0m") == {
        "in state": "the state of stack lab has it",
        "of a request": "the state of stack lab has it",
        "being ordered": "of stack lab, which is up: its next run handles it",
        "a key": "may belong to stack lab, whose state is here",
        "lost": "",
    }
    project = old("its project", kind="project")
    assert kept(project, old("x", project="its project"), here=LAB)["its project"] == "the state of stack lab has it"


def test_stacks_that_are_named_and_no_others() -> None:
    assert kept(old("mine", "lab"), old("theirs"), OF="lab") == {
        "mine": "", "theirs": "of another stack than the named one",
    }  # fmt: skip


def test_a_project_is_ours_when_all_in_it_is_and_goes() -> None:
    project = old("p", kind="project")
    assert kept(project, old("a"))["p"] == ""
    assert kept(project)["p"] == "it has no sign of this program"
    assert kept(project, old("a"), others=1)["p"] == "contains resources that this program did not make"
    assert kept(project, old("a"), old("b", hours=0))["p"] == "contains resources that stay"
    assert kept(old("p", kind="project", hours=0), old("a"))["p"] == "too young"


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


def swept(api: Listed, named: str | None = None, here: Held = NOTHING, **environment: str) -> str:
    out = io.StringIO()
    sweep.run(
        api,
        Screen(Console(file=out, width=200)),
        projects=set[str]() if named else {PROJECT},
        named=named,
        wanted=wanted(**environment),
        held=lambda: here,
        clock=lambda: NOW,
    )
    return out.getvalue()


def test_orphans_are_deleted_once_exactly_they_were_confirmed() -> None:
    api = Listed(old("orphan"), others=1)
    with pytest.raises(
        RunFailed, match="1 resources of another checkout or of a lost state, of stacks named: ci"
    ) as listed:
        swept(api)
    assert "make sweep OF=<stack>" in str(listed.value) and "CONFIRM" not in str(listed.value)
    with pytest.raises(RunFailed, match="1 orphans of stack ci, if no other checkout has it up") as listed:
        swept(api, OF="ci")
    code = str(listed.value).partition("CONFIRM=")[2][:8]
    with pytest.raises(RunFailed, match="was not confirmed"):
        swept(api, OF="ci", SWEEP="delete")
    another = old("another")
    api.things.append(another)
    with pytest.raises(RunFailed, match=f"CONFIRM={code} was for another list"):
        swept(api, OF="ci", SWEEP="delete", CONFIRM=code)
    assert api.ids == ["orphan", "another"]
    api.things.remove(another)
    assert "1 orphans deleted" in swept(api, OF="ci", SWEEP="delete", CONFIRM=code)
    assert "no orphans (0 resources of this program stay)" in swept(api)


def test_a_live_stack_loses_nothing_although_it_is_named() -> None:
    api = Listed(old("live", marks={"run": "1"}), old("lost", marks={"run": "2"}))
    here = Held(stacks=frozenset({"ci"}), runs={"1": "ci"})
    assert "1 orphans deleted" in swept(api, here=here, OF="ci", SWEEP="delete", CONFIRM="yes", AGE="0m")
    assert api.ids == ["live"]


def test_projects_that_a_stack_made_are_found_by_name_and_mark() -> None:
    api = Listed(old("ours", kind="project"), old("theirs", kind="project"))
    assert "no orphans" in swept(api, named="ours")
    api.things.append(old("192.0.2.1", kind="reserved address", project="ours"))
    assert "2 orphans deleted" in swept(api, named="ours", OF="ci", SWEEP="delete", CONFIRM="yes", AGE="0m")
    assert api.ids == ["theirs"]


def test_what_the_states_of_this_checkout_know(tmp_path: Any) -> None:
    layout = Layout(root=tmp_path, stack="lab")
    assert held(layout) == NOTHING
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
    found = held(layout)
    assert found.stacks == {"lab", "da11"} and found.runs == {"1": "lab"}
    assert found.ids == dict.fromkeys(("1", "e", "d"), "lab")
    Layout(root=tmp_path, stack="da11").checkpoints()["da11"].write_text("{")
    with pytest.raises(RunFailed, match=r"da11\.json cannot be read"):
        held(layout)
