"""Leftovers of interrupted runs: which are found, which are deleted, which are nobody's business.

What the provider finds in a project and how it deletes that: tests/provider/leftovers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.tools.listed import NOW, PROJECT, Listed, thing
from tools import recover
from tools.metal import Resource
from tools.state import CLUSTER_KEYS, DEVICE, EPHEMERAL, SPOT_REQUEST, Deployment
from tools.state import PROJECT as PROJECT_TYPE

KEYS = {"urn": f"urn:pulumi:t::p::{CLUSTER_KEYS}::keys", "type": CLUSTER_KEYS, "id": "r1"}
BOOTSTRAP = thing("bootstrap", marks={"role": "bootstrap"})


def state(*resources: dict[str, Any], pending: tuple[dict[str, Any], ...] = ()) -> Deployment:
    return Deployment(
        document={"version": 3, "deployment": {"resources": list(resources), "pending_operations": pending}}
    )


def device(id: str, type_: str = DEVICE, **outputs: str) -> dict[str, Any]:
    urn = f"urn:pulumi:t::metal-ipi::{type_}::name-of-{id}"
    return {"urn": urn, "type": type_, "custom": True, "id": id, "outputs": outputs}


def find(
    api: Listed, known: Deployment, *, destroying: bool = False, since: datetime | None = None
) -> recover.Leftovers:
    scan = recover.scan_for("t", "c.test", known, PROJECT, since, run=known.run(), destroying=destroying)
    return recover.find(api, scan, known)


@pytest.mark.parametrize(
    ("known", "things", "orphans"),
    [
        (state(device("known")), [thing("known"), thing("orphan")], {"orphan"}),
        (state(), [thing("other stack", stack="t2"), thing("other team", cluster="d.test")], set()),
        (state(), [thing("key", kind="SSH key"), thing("key", kind="SSH key", stack="t2")], {"key"}),
        (state(KEYS), [thing("orphan", marks={"run": "r1"}), thing("of another", marks={"run": "r2"})], {"orphan"}),
        # Before there is a run, nothing was ordered.
        (state(), [thing("of another", marks={"run": "r1"})], set()),
        # The machine of a request that the state has is waited for.
        (
            state(device("request", SPOT_REQUEST)),
            [thing("just got", request="request"), thing("unknown", request="of another")],
            {"unknown"},
        ),
    ],
)
def test_only_what_carries_the_stacks_name_and_is_in_no_state_is_found(
    known: Deployment, things: list[Resource], orphans: set[str]
) -> None:
    assert {each.name for each in find(Listed(*things), known).resources} == orphans


@pytest.mark.parametrize(
    ("known", "destroying", "found"),
    [
        (state(), False, False),
        (state(device("lease-1", EPHEMERAL)), True, False),
        (state(), True, True),
        (state(device("lease-1", "x:index:Other", machineId="bootstrap")), True, False),
    ],
)
def test_a_bootstrap_machine_is_left_for_the_resource_that_adopts_it(
    known: Deployment, *, destroying: bool, found: bool
) -> None:
    assert find(Listed(BOOTSTRAP), known, destroying=destroying).resources == ((BOOTSTRAP,) if found else ())


def test_a_machine_older_than_the_interrupted_run_stays() -> None:
    api = Listed(thing("old", created=NOW - timedelta(hours=5)), thing("ageless", created=None), thing("new"))
    found = find(api, state(), since=NOW - timedelta(minutes=1))

    told: list[str] = []
    recover.clear(api, found, told.append)

    assert api.ids == ["old", "ageless"]
    assert told == [
        "deleting machine new (new), which is in no state",
        "machine new (new): deleted",
        *(f"left alone: machine {name} ({name}) carries this stack's name, but is older than the interrupted run,"
          " or in use" for name in api.ids),
    ]  # fmt: skip


def test_the_projects_of_the_state_are_looked_into_too() -> None:
    known = state(device("p-1", PROJECT_TYPE))
    for named, projects in ((None, {"p-1"}), ("p-2", {"p-1", "p-2"})):
        scan = recover.scan_for("t", "c.test", known, named, None, run=None, destroying=False)
        assert scan.projects == projects


def test_a_project_whose_creation_was_interrupted_is_found_by_its_name() -> None:
    pending = {"type": "creating", "resource": {"type": PROJECT_TYPE, "inputs": {"name": "ours"}}}
    projects = [
        thing("ours", kind="project", id="orphan"),
        thing("theirs", kind="project"),
        thing("ours", kind="project", id="old", created=NOW - timedelta(days=1)),
        thing("ours", kind="project", id="used", state=recover.IN_USE),
    ]
    found = find(Listed(*projects), state(pending=(pending,)), since=NOW)
    assert [project.id for project in found.resources] == ["orphan"]
    assert [project.id for project in found.older] == ["old", "used"]
    assert find(Listed(*projects), state(), since=NOW).resources == ()


def test_the_cluster_of_a_state_is_known_by_its_machines_tags() -> None:
    machine = {**device("a"), "inputs": {"tags": ["metal-ipi", "metal-ipi:cluster=c.test"]}}
    assert state(device("b"), machine).cluster() == "c.test"
    assert state(device("x", "x:index:Other")).cluster() is None


def test_pending_creates_are_named_and_cleared() -> None:
    creating = {"type": "creating", "resource": device("")}
    known = state(device("a"), pending=(creating, {"type": "deleting", "resource": {}}))
    assert list(known.pending_creates()) == [(DEVICE, "name-of-")]
    assert "pending_operations" not in known.without_pending()["deployment"]
    assert known.without_pending()["deployment"]["resources"] == known.resources


def test_a_destroy_deletes_what_was_being_made_and_has_no_mark() -> None:
    records = {"urn": "urn::dns", "type": "metal-ipi:index:DnsRecords", "custom": True, "inputs": {"zone": "new"}}
    files = {"urn": "urn::files", "type": "metal-ipi:index:Artifacts", "custom": True, "inputs": {"files": {}}}
    old = {**records, "id": "zone/dns", "inputs": {"zone": "old"}, "outputs": {"zone": "old"}}
    known = state(
        old,
        pending=(
            {"type": "updating", "resource": {**records, "id": "zone/dns"}},
            {"type": "creating", "resource": files},
            {"type": "deleting", "resource": files},
            {"type": "creating", "resource": device("")},
        ),
    )
    deployment = known.for_destroy()["deployment"]
    assert deployment["resources"] == [
        old,
        {**records, "id": "zone/dns", "outputs": {"zone": "new"}, "delete": True},
        {**files, "id": "interrupted", "outputs": {"files": {}}},
    ]
    assert "pending_operations" not in deployment
