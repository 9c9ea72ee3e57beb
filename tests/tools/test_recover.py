"""Leftovers of interrupted runs: which are found, which are deleted, which are nobody's business."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.tools.world.metal import PROJECT, TOKEN, MetalServer
from tools import recover
from tools.errors import RecoveryFailed
from tools.metal import MetalApi
from tools.state import EPHEMERAL, Deployment

MINE = ("metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.test")
NOW = datetime.now(UTC)


@pytest.fixture
def metal() -> Iterator[MetalServer]:
    with MetalServer() as server:
        yield server


@pytest.fixture
def api(metal: MetalServer) -> MetalApi:
    return MetalApi(TOKEN, url=metal.url, patience=5)


def state(*resources: dict[str, Any], pending: tuple[dict[str, Any], ...] = ()) -> Deployment:
    return Deployment(
        document={"version": 3, "deployment": {"resources": list(resources), "pending_operations": pending}}
    )


def device(id: str, type_: str = "equinix-metal:index/device:Device", **outputs: str) -> dict[str, Any]:
    urn = f"urn:pulumi:t::metal-ipi::{type_}::name-of-{id}"
    return {"urn": urn, "type": type_, "custom": True, "id": id, "outputs": outputs}


def scan(
    known: Deployment, *, destroying: bool = False, since: datetime | None = None, run: str | None = None
) -> recover.Scan:
    return recover.scan_for("t", "c.test", known, PROJECT, since, run=run, destroying=destroying)


def names(found: recover.Leftovers) -> set[str]:
    return {resource.name for resource in found.resources}


def test_only_what_carries_the_stacks_name_and_is_in_no_state_is_found(metal: MetalServer, api: MetalApi) -> None:
    known = state(device(metal.add("known", *MINE)))
    metal.add("orphan", *MINE)
    metal.add("other stack", "metal-ipi:stack=t2", "metal-ipi:cluster=c.test")
    metal.add("other team", "metal-ipi:stack=t", "metal-ipi:cluster=d.test")
    metal.add("someone's", "web")
    metal.add_key("metal-ipi:t:c.test")
    metal.add_key("metal-ipi:t2:c.test")
    metal.add_key("laptop")

    assert names(recover.find(api, scan(known), known)) == {"orphan", "metal-ipi:t:c.test"}


def test_what_another_run_ordered_is_never_found(metal: MetalServer, api: MetalApi) -> None:
    keys = {"urn": "urn:pulumi:t::p::metal-ipi:index:ClusterKeys::keys", "type": "metal-ipi:index:ClusterKeys"}
    known = state({**keys, "id": "r1"})
    metal.add("orphan", *MINE, "metal-ipi:run=r1")
    metal.add("another checkout's", *MINE, "metal-ipi:run=r2")
    metal.add_key("metal-ipi:t:c.test run=r1")
    metal.add_key("metal-ipi:t:c.test run=r2")

    assert (known.run(), state().run()) == ("r1", None)
    assert names(recover.find(api, scan(known, run=known.run()), known)) == {"orphan", "metal-ipi:t:c.test run=r1"}
    assert names(recover.find(api, scan(state()), state())) == set(), "before there is a run, nothing was ordered"


def test_a_bootstrap_machine_is_left_for_the_resource_that_adopts_it(metal: MetalServer, api: MetalApi) -> None:
    id = metal.add("bootstrap", *MINE, "metal-ipi:role=bootstrap")
    empty, adopted = state(), state(device("lease-1", EPHEMERAL))

    assert names(recover.find(api, scan(empty), empty)) == set()
    assert names(recover.find(api, scan(adopted, destroying=True), adopted)) == set()
    assert names(recover.find(api, scan(empty, destroying=True), empty)) == {"bootstrap"}
    named = state(device("lease-1", "x:index:Other", machineId=id))
    assert names(recover.find(api, scan(named, destroying=True), named)) == set()


def test_a_machine_that_a_known_request_has_got_is_waited_for_and_not_deleted(
    metal: MetalServer, api: MetalApi
) -> None:
    request, unknown = "equinix-metal:index/spotMarketRequest:SpotMarketRequest", metal.add("unknown", *MINE)
    metal.requests = {"known-request": [metal.add("just got", *MINE)], "unknown-request": [unknown]}
    known = state(device("known-request", request))
    found = recover.find(api, scan(known), known)
    assert {(each.kind, each.id) for each in found.resources} == {
        ("machine", unknown), ("spot market request", "unknown-request"),
    }  # fmt: skip


def test_a_machine_older_than_the_interrupted_run_stays(metal: MetalServer, api: MetalApi) -> None:
    old = metal.add("old", *MINE, created=NOW - timedelta(hours=5))
    metal.add("new", *MINE)
    found = recover.find(api, scan(state(), since=NOW - timedelta(minutes=1)), state())
    assert names(found) == {"new"}

    told: list[str] = []
    recover.clear(api, found, told.append)

    assert list(metal.devices) == [old]
    assert [line for line in told if "left alone: machine old" in line]
    assert [line for line in told if "deleting machine new" in line]


def test_the_projects_of_the_state_are_looked_into_too() -> None:
    known = state(device("p-1", "equinix-metal:index/project:Project"))
    assert recover.scan_for("t", "c.test", known, None, None, run=None, destroying=False).projects == {"p-1"}
    assert recover.scan_for("t", "c.test", known, "p-2", None, run=None, destroying=False).projects == {"p-1", "p-2"}


def test_a_project_whose_creation_was_interrupted_is_found_by_its_name(metal: MetalServer, api: MetalApi) -> None:
    pending = {"type": "creating", "resource": {"type": "equinix-metal:index/project:Project", "inputs": {"name": "p"}}}
    since = NOW - timedelta(minutes=1)
    orphan, other = metal.add_project("p"), metal.add_project("q")
    old = metal.add_project("p", NOW - timedelta(days=1))
    used = metal.add_project("p")
    metal.projects[used]["devices"] = [{"id": "d", "hostname": "someone's", "tags": []}]
    known = state(pending=(pending,))
    found = recover.find(api, scan(known, since=since), known)
    assert [project.id for project in found.resources] == [orphan]

    told: list[str] = []
    recover.clear(api, found, told.append)

    assert set(metal.projects) == {other, old, used}
    assert len([line for line in told if line.startswith("left alone: project p")]) == 2
    assert recover.find(api, scan(state(), since=since), state()).resources == ()


def test_a_reserved_address_that_no_state_knows_is_given_back(metal: MetalServer, api: MetalApi) -> None:
    known = state(device(metal.add_address("192.0.2.1", *MINE), "equinix-metal:index/reservedIpBlock:ReservedIpBlock"))
    orphan = metal.add_address("192.0.2.2", *MINE)
    metal.add_address("192.0.2.3", "metal-ipi:stack=t", "metal-ipi:cluster=d.test")
    metal.add_address("192.0.2.4", *MINE, management=True)
    found = recover.find(api, scan(known), known)
    assert [block.id for block in found.resources] == [orphan]

    told: list[str] = []
    recover.clear(api, found, told.append)

    assert metal.deleted == [orphan]
    named = f"reserved address 192.0.2.2 ({orphan})"
    assert told == [f"deleting {named}: no state knows it", f"{named}: deleted"]


def test_a_bgp_session_that_no_state_knows_is_closed_so_that_it_can_be_opened(
    metal: MetalServer, api: MetalApi
) -> None:
    machine = metal.add("known", *MINE)
    session, unknown = (metal.add_session(machine) for _ in range(2))
    metal.add_session(metal.add("someone's", "web"))
    known = state(device(machine), device(session, "equinix-metal:index/bgpSession:BgpSession"))
    found = recover.find(api, scan(known), known)
    assert [each.id for each in found.resources] == [unknown]
    recover.clear(api, found, lambda text: None)
    assert metal.deleted == [unknown]


def test_the_cluster_of_a_state_is_known_by_its_machines_tags() -> None:
    machine = {**device("a"), "inputs": {"tags": ["metal-ipi", "metal-ipi:cluster=c.test"]}}
    assert state(device("b"), machine).cluster() == "c.test"
    assert state(device("x", "x:index:Other")).cluster() is None


def test_an_api_that_stumbles_is_asked_again(metal: MetalServer, api: MetalApi) -> None:
    metal.add("orphan", *MINE)
    metal.refusals = [503, 429, 500]
    found = recover.find(api, scan(state()), state())
    metal.refusals = [502, 429]
    recover.clear(api, found, lambda text: None)
    assert metal.devices == {}


@pytest.mark.parametrize("status", [401, 403, 422])
def test_an_api_that_refuses_is_an_error_that_names_it(metal: MetalServer, api: MetalApi, status: int) -> None:
    metal.refusals = [status]
    with pytest.raises(RecoveryFailed, match=f"refuses GET /projects/{PROJECT}/devices[\\s\\S]*{status}"):
        recover.find(api, scan(state()), state())


def test_an_api_that_does_not_answer_is_an_error() -> None:
    client = MetalApi(TOKEN, url="http://127.0.0.1:9", patience=0.2)
    with pytest.raises(RecoveryFailed, match=r"GET /projects/\S+/devices failed for 0.2 s: ConnectError"):
        client.find([PROJECT])


def test_a_machine_that_is_still_being_provisioned_is_asked_for_again(metal: MetalServer, api: MetalApi) -> None:
    metal.add("orphan", *MINE)
    found = recover.find(api, scan(state()), state())
    metal.refusals = [422, 422]
    recover.clear(api, found, lambda text: None)
    assert metal.devices == {}


def test_a_machine_that_does_not_go_is_an_error_and_the_rest_goes(metal: MetalServer) -> None:
    id = metal.add("stuck", *MINE)
    metal.add_key("metal-ipi:t:c.test")
    metal.stuck.add(id)
    api = MetalApi(TOKEN, url=metal.url, patience=0.5)
    found = recover.find(api, scan(state()), state())
    with pytest.raises(RecoveryFailed, match=f"machine stuck \\({id}\\): .* told to stay"):
        recover.clear(api, found, lambda text: None)
    assert list(metal.devices) == [id] and metal.keys == {}


def test_pending_creates_are_named_and_cleared() -> None:
    resource = device("", "equinix-metal:index/device:Device")
    known = state(
        device("a"), pending=({"type": "creating", "resource": resource}, {"type": "deleting", "resource": {}})
    )
    assert list(known.pending_creates()) == [("equinix-metal:index/device:Device", "name-of-")]
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
            {"type": "creating", "resource": device("", "equinix-metal:index/device:Device")},
        ),
    )
    deployment = known.for_destroy()["deployment"]
    assert deployment["resources"] == [
        old,
        {**records, "id": "zone/dns", "outputs": {"zone": "new"}, "delete": True},
        {**files, "id": "interrupted", "outputs": {"files": {}}},
    ]
    assert "pending_operations" not in deployment
