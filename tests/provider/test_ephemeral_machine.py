"""EphemeralMachine against a Metal API on loopback, with the faults that matter."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from provider.errors import InitFailed, RemoteError
from provider.values import UNKNOWN, has_unknown
from tests.provider import fake_metal
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import Harness, Resource, kills, until

TAGS = [
    "metal-ipi",
    "metal-ipi:stack=lab",
    "metal-ipi:cluster=lab.test",
    "metal-ipi:name=lab-bootstrap",
    "metal-ipi:role=bootstrap",
    "metal-ipi:run=r1",
]
INPUTS: dict[str, Any] = {
    "projectId": "p",
    "hostname": "lab-bootstrap",
    "plan": "c3.small.x86",
    "metro": "lb",
    "operatingSystem": "custom_ipxe",
    "ipxeScriptUrl": "http://boot.facility.test/x.ipxe",
    "alwaysPxe": False,
    "userData": '{"ignition": {}}',
    "tags": TAGS,
    "timeoutSeconds": 20,
}


@pytest.fixture
def metal() -> Iterator[FakeMetal]:
    with fake_metal.running() as server:
        yield server


async def machine(metal: FakeMetal) -> Resource:
    harness = Harness({"metal": {"authToken": "a-token-nobody-may-see", "endpoint": metal.url}})
    await harness.configure()
    return Resource(harness, "EphemeralMachine")


def test_whole_life(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        state = await it.up(INPUTS)
        assert (state["publicIpv4"], state["privateIpv4"]) == ("198.51.100.1", "203.0.113.1")
        assert state["console"] == "sos.lab1.platformequinix.com"
        assert state["present"] is True and state["machineId"] == it.id
        assert metal.bodies[0]["userdata"] == INPUTS["userData"]
        assert "facility" not in metal.bodies[0]
        assert it.harness.log.messages[0] == "ordering lab-bootstrap"
        # A changed specification takes effect on the next installation only.
        assert await it.changes({**INPUTS, "plan": "m3.large.x86", "userData": "other"}) == []
        await it.delete()
        assert metal.devices == {}
        await it.delete()

    asyncio.run(run())


def test_a_removed_machine_is_still_ours_and_no_change(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        await it.up(INPUTS)
        metal.devices.clear()
        await it.refresh()
        assert it.id and it.state["present"] is False
        assert await it.changes(INPUTS) == []

    asyncio.run(run())


def test_a_machine_of_a_killed_run_is_taken_over(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.add("lab-bootstrap", TAGS, state="deprovisioning")
        orphan = metal.add("lab-bootstrap", TAGS, state="active")
        metal.add("lab-bootstrap", ["metal-ipi:stack=other", "metal-ipi:name=lab-bootstrap"])
        metal.add("lab-bootstrap", [tag.replace("=lab.test", "=lab.other") for tag in TAGS])
        metal.add("lab-bootstrap", [tag.replace("=r1", "=r2") for tag in TAGS])
        it = await machine(metal)
        await it.up(INPUTS)
        assert it.id == orphan and metal.count("POST") == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    "fault",
    [
        "lose the answer",
        (429, {"errors": ["slow down"]}, {"Retry-After": "1"}),
        (503, {}, {}),
        (500, {"error": "oops"}, {}),
    ],
    ids=["answer lost", "429", "503", "500"],
)
def test_an_order_is_never_made_twice(metal: FakeMetal, fault: Any) -> None:
    async def run() -> None:
        metal.faults = {"POST": [fault], "GET": [(502, {}, {})], "DELETE": [(503, {}, {})]}
        it = await machine(metal)
        await it.up(INPUTS)
        assert len(metal.devices) == 1
        await it.delete()
        assert metal.devices == {}

    asyncio.run(run())


def test_a_slow_machine_stays_in_the_state_and_the_next_up_waits_on(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.states = ["queued"] + ["provisioning"] * 10_000
        it = await machine(metal)
        with pytest.raises(InitFailed, match=r"lab-bootstrap .* is still provisioning after 2 s; it is kept"):
            await it.up({**INPUTS, "timeoutSeconds": 2})
        assert it.id in metal.devices
        assert any(
            re.search(r"waiting for lab-bootstrap \(provisioning\), \d s", text) for text in it.harness.log.messages
        )
        # Also after a refresh, which forgets the error.
        await it.refresh()
        assert await it.changes(INPUTS) == ["state"]
        metal.devices[it.id]["walk"] = ["active"]
        await it.up(INPUTS)
        assert it.state["state"] == "active" and metal.count("POST") == 1

    asyncio.run(run())


def test_a_failed_machine_tells_why_and_is_replaced_by_the_next_up(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.states = ["queued", "failed"]
        it = await machine(metal)
        order = it.up(INPUTS)
        metal.events = _AnyDevice([{"type": "provisioning.failed", "body": "no hardware left in lb"}])  # type: ignore[assignment]
        with pytest.raises(InitFailed, match="no hardware left in lb"):
            await order
        failed = it.id
        metal.states = ["queued", "active"]
        await it.up(INPUTS)
        assert it.state["machineId"] != failed and list(metal.devices) == [it.state["machineId"]]

    asyncio.run(run())


class _AnyDevice(dict[str, Any]):
    """The same events for whatever device."""

    def __init__(self, events: list[Any]) -> None:
        super().__init__()
        self._events = events

    def get(self, key: str, default: Any = None) -> Any:
        return self._events


@kills
def test_a_cancelled_creation_keeps_the_machine(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.states = ["queued"] + ["provisioning"] * 10_000
        it = await machine(metal)
        task = asyncio.ensure_future(it.up(INPUTS))
        await until(lambda: any(len(each["walk"]) < 10_000 for each in metal.devices.values()))
        task.cancel()
        with pytest.raises(InitFailed, match="interrupted while lab-bootstrap"):
            await task
        assert it.id in metal.devices

    asyncio.run(run())


def test_refusals_name_the_remedy_and_no_token(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.faults = {"GET": [(401, {"error": "Invalid authentication token"}, {})]}
        with pytest.raises(RemoteError, match=r"Invalid authentication token.*set another one") as caught:
            await (await machine(metal)).up(INPUTS)
        assert "nobody-may-see" not in str(caught.value)
        metal.faults = {"POST": [(422, {"errors": ["plan c3 is not available in lb"]}, {})]}
        with pytest.raises(RemoteError, match="not available in lb"):
            await (await machine(metal)).up(INPUTS)
        assert metal.devices == {}

    asyncio.run(run())


def test_check_and_preview(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        problems = await it.check({**INPUTS, "facilities": ["lb1"], "tags": ["x"], "plam": "x", "hostname": "Not_One"})
        assert [problem.split(" ")[0] for problem in problems] == ["plam", "hostname", "metro", "tags"]
        assert await it.check({**INPUTS, "userData": UNKNOWN, "tags": [UNKNOWN]}) == []
        preview = await it.preview({**INPUTS, "userData": UNKNOWN})
        assert has_unknown(preview["publicIpv4"]) and preview["present"] is True
        assert metal.requests == []

    asyncio.run(run())


def test_what_it_is_ordered_with(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        more = {
            "hardwareReservationId": "next-available",
            "terminationTime": "2026-01-01T12:00:00Z",
            "customData": "{}",
            "publicSubnet": 29,
        }
        await it.up({**INPUTS, **more})
        ordered = metal.bodies[0]
        assert ordered["hardware_reservation_id"] == "next-available"
        assert (ordered["termination_time"], ordered["customdata"]) == ("2026-01-01T12:00:00Z", "{}")
        assert [address.get("cidr") for address in ordered["ip_addresses"]] == [29, None]
        assert [problem.split(" ")[0] for problem in await it.check({**INPUTS, "publicSubnet": 24})] == ["publicSubnet"]

    asyncio.run(run())


_CLEARED = [{"provisionable": False, "device": {"id": "d", "hostname": "old", "state": "deprovisioning"}}]


def test_a_reserved_server_is_waited_for_until_it_is_cleared(metal: FakeMetal) -> None:
    async def run() -> None:
        metal.reserved = {"r": [*_CLEARED, {"provisionable": False}, {"provisionable": True}]}
        it = await machine(metal)
        await it.up({**INPUTS, "hardwareReservationId": "r"})
        assert metal.bodies[0]["hardware_reservation_id"] == "r"
        assert [path.partition("?")[0] for _, path in metal.requests].count("/hardware-reservations/r") == 3

    asyncio.run(run())


def test_a_reserved_server_that_somebody_has_is_told(metal: FakeMetal) -> None:
    async def run() -> None:
        holder = {"id": "d", "hostname": "theirs", "state": "active"}
        metal.reserved = {"r": [{"provisionable": False, "device": holder}]}
        with pytest.raises(
            RemoteError, match=r"reservation r holds machine theirs \(d\): delete that, or name another"
        ):
            await (await machine(metal)).up({**INPUTS, "hardwareReservationId": "r"})
        assert metal.devices == {}

    asyncio.run(run())


def test_a_disposable_machine_that_booted_something_else_is_made_anew(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        await it.up({**INPUTS, "disposable": True})
        (first,) = metal.devices
        wanted = {**INPUTS, "disposable": True, "userData": '{"ignition": {"version": "3.2.0"}}'}
        assert await it.changes(wanted) == ["userData"]
        preview = await it.preview(wanted)
        assert has_unknown(preview["publicIpv4"]) and preview["present"] is True
        assert await it.changes({**wanted, "userData": UNKNOWN}) == ["userData"]
        state = await it.up(wanted)
        (second,) = metal.devices
        assert first != second and state["machineId"] == second and it.id == first
        assert metal.bodies[-1]["userdata"] == wanted["userData"]
        assert await it.changes(wanted) == []

    asyncio.run(run())


def test_what_is_gone_or_not_disposable_any_more_is_not_made_anew(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        await it.up({**INPUTS, "disposable": True})
        other = {**INPUTS, "userData": "other"}
        assert await it.changes(other) == [], "the cluster is formed"
        assert await it.changes({**INPUTS, "disposable": True, "plan": "m3.large.x86"}) == []
        metal.devices.clear()
        await it.refresh()
        assert await it.changes({**other, "disposable": True}) == [], "it was removed"
        assert metal.count("POST") == 1

    asyncio.run(run())


def test_killed_between_the_two_the_next_run_makes_the_other_one(metal: FakeMetal) -> None:
    async def run() -> None:
        it = await machine(metal)
        await it.up({**INPUTS, "disposable": True})
        metal.devices.clear()  # deleted; the run was killed before it ordered another
        wanted = {**INPUTS, "disposable": True, "userData": "other"}
        state = await it.up(wanted)
        assert list(metal.devices) == [state["machineId"]] and metal.bodies[-1]["userdata"] == "other"
        # Killed after the order: the machine is there, and the state does not know it.
        it.state["machineId"], it.inputs = "0", INPUTS
        again = await it.up(wanted)
        assert again["machineId"] == state["machineId"] and metal.count("POST") == 2

    asyncio.run(run())


def test_a_machine_of_a_killed_run_that_booted_something_else_is_not_taken_over(metal: FakeMetal) -> None:
    async def run() -> None:
        stale = metal.add("lab-bootstrap", TAGS, state="active")
        metal.devices[stale]["userdata"] = "of assets that are made anew since"
        it = await machine(metal)
        await it.up(INPUTS)
        assert it.id != stale and list(metal.devices) == [it.id]

    asyncio.run(run())
