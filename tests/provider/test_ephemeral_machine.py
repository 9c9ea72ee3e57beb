"""EphemeralMachine against a Metal API on loopback, with the faults that matter."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from metal_ipi.provider.errors import InitFailed, ProviderError, RemoteError
from metal_ipi.provider.platforms.equinix_metal import driver
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import Resource, configured, kills, until

pytestmark = pytest.mark.usefixtures("no_waiting")

TAGS = ["metal-ipi", *(f"metal-ipi:{key}" for key in (
    "stack=lab", "cluster=lab.test", "name=lab-bootstrap", "role=bootstrap", "run=r1"))]  # fmt: skip
INPUTS: dict[str, Any] = {
    "projectId": "p",
    "hostname": "lab-bootstrap",
    "plan": "c3.small.x86",
    "metro": "lb",
    "ipxeScriptUrl": "http://boot.facility.test/x.ipxe",
    "userData": '{"ignition": {}}',
    "tags": TAGS,
    "timeoutSeconds": 60,
}
DISPOSABLE = {**INPUTS, "disposable": True}
OTHER = {**DISPOSABLE, "userData": "other"}


@pytest.fixture
async def it(metal: FakeMetal) -> Resource:
    section = {"authToken": "a-token-nobody-may-see", "endpoint": metal.url}
    return await configured("EphemeralMachine", metal=section)


def wrong(problems: list[str]) -> list[str]:
    """The inputs that are refused."""
    return [problem.split(" ")[0] for problem in problems]


async def test_whole_life(it: Resource, metal: FakeMetal) -> None:
    state = await it.up(INPUTS)
    assert (state["publicIpv4"], state["privateIpv4"]) == ("198.51.100.1", "203.0.113.1")
    assert state["console"] == "sos.lab1.platformequinix.com"
    assert state["present"] is True and state["machineId"] == it.id
    assert metal.bodies[0]["userdata"] == INPUTS["userData"] and "facility" not in metal.bodies[0]
    assert metal.bodies[0]["operating_system"] == "custom_ipxe" and metal.bodies[0]["always_pxe"] is False
    assert it.harness.log.messages[0] == "ordering lab-bootstrap"
    # A changed specification takes effect on the next installation only.
    assert await it.changes({**INPUTS, "plan": "m3.large.x86", "userData": "other"}) == []
    await it.delete()
    assert metal.devices == {}
    await it.delete()
    await it.refresh()
    assert it.id and it.state["present"] is False and await it.changes(INPUTS) == [], "removed, it is still ours"


async def test_a_machine_of_a_killed_run_is_taken_over(it: Resource, metal: FakeMetal) -> None:
    stale = metal.add("lab-bootstrap", TAGS)
    metal.devices[stale]["userdata"] = "of assets that are made anew since"
    metal.add("lab-bootstrap", TAGS, state="failed")
    orphan = metal.add("lab-bootstrap", TAGS)
    spare = metal.add("lab-bootstrap", TAGS)
    others = [
        metal.add("lab-bootstrap", TAGS, state="deprovisioning"),
        metal.add("lab-bootstrap", ["metal-ipi:stack=other", "metal-ipi:name=lab-bootstrap"]),
        metal.add("lab-bootstrap", [tag.replace("=lab.test", "=lab.other") for tag in TAGS]),
        metal.add("lab-bootstrap", [tag.replace("=r1", "=r2") for tag in TAGS]),
    ]
    await it.up(INPUTS)
    assert it.id == orphan and metal.count("POST") == 0
    assert list(metal.devices) == [orphan, *others] and spare not in metal.devices


@pytest.mark.parametrize(
    "fault", ["lose the answer", (429, {"errors": ["slow down"]}, {"Retry-After": "1"}), (503, {}, {}), (500, {}, {})],
    ids=["answer lost", "429", "503", "500"],
)  # fmt: skip
async def test_an_order_is_never_made_twice(it: Resource, metal: FakeMetal, fault: Any) -> None:
    metal.faults = {"POST": [fault], "GET": [(502, {}, {})], "DELETE": [(503, {}, {})]}
    await it.up(INPUTS)
    assert len(metal.devices) == 1
    await it.delete()
    assert metal.devices == {}


async def test_a_slow_machine_stays_in_the_state_and_the_next_up_waits_on(it: Resource, metal: FakeMetal) -> None:
    metal.states = ["queued"] + ["provisioning"] * 10_000
    with pytest.raises(InitFailed, match=r"lab-bootstrap .* is still provisioning after 9 s; it is kept"):
        await it.up({**INPUTS, "timeoutSeconds": 9})
    assert it.id in metal.devices
    assert re.search(r"waiting for lab-bootstrap \(provisioning\), \d s", str(it.harness.log.messages))
    # Also after a refresh, which forgets the error.
    await it.refresh()
    assert await it.changes(INPUTS) == ["state"]
    metal.devices[it.id]["walk"] = ["active"]
    await it.up(INPUTS)
    assert it.state["state"] == "active" and metal.count("POST") == 1


async def test_a_failed_machine_tells_why_and_is_replaced_by_the_next_up(it: Resource, metal: FakeMetal) -> None:
    metal.states, metal.told = ["queued", "failed"], [{"type": "provisioning.failed", "body": "no hardware left in lb"}]
    with pytest.raises(InitFailed, match="no hardware left in lb"):
        await it.up(INPUTS)
    failed = it.id
    metal.states = ["queued", "active"]
    await it.up(INPUTS)
    assert it.state["machineId"] != failed and list(metal.devices) == [it.state["machineId"]]


async def test_a_machine_that_disappears_and_one_that_stays(it: Resource, metal: FakeMetal) -> None:
    metal.states = ["queued", "deprovisioning"]
    with pytest.raises(InitFailed, match="disappeared while it was being provisioned"):
        await it.up(INPUTS)
    metal.states = ["active"]
    await it.up(INPUTS)
    metal.stays = True
    it.state["timeoutSeconds"] = 9
    with pytest.raises(ProviderError, match=r"is still deprovisioning 9 s after its deletion .* to continue to wait"):
        await it.delete()


@kills
async def test_a_cancelled_creation_keeps_the_machine(it: Resource, metal: FakeMetal) -> None:
    metal.states = ["queued"] + ["provisioning"] * 10_000
    task = asyncio.ensure_future(it.up({**INPUTS, "timeoutSeconds": 1e6}))
    await until(lambda: any(len(each["walk"]) < 10_000 for each in metal.devices.values()))
    task.cancel()
    with pytest.raises(InitFailed, match="interrupted while lab-bootstrap"):
        await task
    assert it.id in metal.devices


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ({"GET": [(401, {"error": "Invalid token"}, {})]}, "Invalid token.*set another one"),
        ({"POST": [(422, {"errors": ["plan c3 is not available in lb"]}, {})]}, "not available in lb"),
        ({"POST": [(503, {}, {})] * 999}, "did not take the order of lab-bootstrap: HTTP 503"),
        ({"GET": [(503, {}, {})] * 999}, "GET /projects/p/devices failed for 120 s: HTTP 503"),
    ],
)
async def test_refusals_name_the_remedy_and_no_token(it: Resource, metal: FakeMetal, faults: Any, told: str) -> None:
    metal.faults = faults
    with pytest.raises(RemoteError, match=told) as caught:
        await it.up(INPUTS)
    assert "nobody-may-see" not in str(caught.value) and metal.devices == {}


async def test_check_and_preview(it: Resource, metal: FakeMetal) -> None:
    bad = {**INPUTS, "facilities": ["lb1"], "tags": ["x"], "plam": "x", "hostname": "Not_One", "publicSubnet": 24}
    assert wrong(await it.check(bad)) == ["plam", "hostname", "publicSubnet", "metro", "tags"]
    assert await it.check({**INPUTS, "userData": UNKNOWN, "tags": [UNKNOWN]}) == []
    preview = await it.preview({**INPUTS, "userData": UNKNOWN})
    assert has_unknown(preview["publicIpv4"]) and preview["present"] is True
    assert metal.requests == []


async def test_what_it_is_ordered_with(it: Resource, metal: FakeMetal) -> None:
    end = "2026-01-01T12:00:00Z"
    more = {"hardwareReservationId": "next-available", "terminationTime": end, "customData": "{}", "publicSubnet": 29}
    await it.up({**INPUTS, **more})
    ordered = metal.bodies[0]
    assert ordered["hardware_reservation_id"] == "next-available"
    assert (ordered["termination_time"], ordered["customdata"]) == (end, "{}")
    assert [address.get("cidr") for address in ordered["ip_addresses"]] == [29, None]


# --- reserved servers

_CLEARED = {"provisionable": False, "device": {"id": "d", "hostname": "old", "state": "deprovisioning"}}
_HELD = {"provisionable": False, "device": {"id": "d", "hostname": "theirs", "state": "active"}}
RESERVED = {**INPUTS, "hardwareReservationId": "r"}


async def test_a_reserved_server_is_waited_for_until_it_is_cleared(it: Resource, metal: FakeMetal) -> None:
    metal.reserved = {"r": [_CLEARED, {"provisionable": False}, {"provisionable": True}]}
    await it.up(RESERVED)
    assert metal.bodies[0]["hardware_reservation_id"] == "r"
    assert metal.requests.count(("GET", "/hardware-reservations/r")) == 3


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (_HELD, r"reservation r holds machine theirs \(d\): delete that, or name another"),
        (_CLEARED, "reservation r is not provisionable after 60 s; run the same command again to continue to wait"),
    ],
)
async def test_a_reserved_server_that_does_not_come_is_told(
    it: Resource, metal: FakeMetal, monkeypatch: pytest.MonkeyPatch, shown: Any, told: str
) -> None:
    monkeypatch.setattr(driver, "_CLEARING", 60.0)
    metal.reserved = {"r": [shown]}
    with pytest.raises(RemoteError, match=told):
        await it.up(RESERVED)
    assert metal.devices == {}


# --- machines with which nothing is lost


async def test_a_disposable_machine_that_booted_something_else_is_made_anew(it: Resource, metal: FakeMetal) -> None:
    await it.up(DISPOSABLE)
    (first,) = metal.devices
    assert await it.changes(OTHER) == ["userData"] == await it.changes({**OTHER, "userData": UNKNOWN})
    preview = await it.preview(OTHER)
    assert has_unknown(preview["publicIpv4"]) and preview["present"] is True
    state = await it.up(OTHER)
    (second,) = metal.devices
    assert first != second and state["machineId"] == second and it.id == first
    assert metal.bodies[-1]["userdata"] == "other" and await it.changes(OTHER) == []


async def test_what_is_gone_or_not_disposable_any_more_is_not_made_anew(it: Resource, metal: FakeMetal) -> None:
    await it.up(DISPOSABLE)
    assert await it.changes({**OTHER, "disposable": False}) == [], "the cluster is formed"
    assert await it.changes({**DISPOSABLE, "plan": "m3.large.x86"}) == []
    metal.devices.clear()
    await it.refresh()
    assert await it.changes(OTHER) == [], "it was removed"


async def test_killed_between_the_two_the_next_run_makes_the_other_one(it: Resource, metal: FakeMetal) -> None:
    await it.up(DISPOSABLE)
    metal.devices.clear()  # deleted; the run was killed before it ordered another
    state = await it.up(OTHER)
    assert list(metal.devices) == [state["machineId"]] and metal.bodies[-1]["userdata"] == "other"
    # Killed after the order: the machine is there, and the state does not know it.
    it.state["machineId"], it.inputs = "0", INPUTS
    again = await it.up(OTHER)
    assert again["machineId"] == state["machineId"] and metal.count("POST") == 2
