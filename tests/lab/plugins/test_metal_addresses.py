"""Blocks of addresses and BGP sessions: what is asked for, kept, refused, and found again."""

from __future__ import annotations

from typing import Any

import pytest

from lab.plugins.base import InitFailed, PluginError
from lab.plugins.values import UNKNOWN, plain_map
from tests.lab.plugins.fake_metal import PROJECT, FakeMetal, Fault
from tests.lab.plugins.harness import Driver, run
from tests.lab.plugins.test_metal_faults import clocks
from tests.lab.plugins.test_metal_resources import driver, metal

__all__ = ["metal"]

BLOCK = "equinix-metal:index/reservedIpBlock:ReservedIpBlock"
SESSION = "equinix-metal:index/bgpSession:BgpSession"

WANTED: dict[str, Any] = {"projectId": PROJECT, "quantity": 4, "metro": "LB", "description": "api", "tags": ["b", "a"]}
ADDRESSES: dict[str, Any] = {
    "address": "192.0.2.128",
    "addressFamily": 4,
    "cidr": 30,
    "cidrNotation": "192.0.2.128/30",
    "gateway": "192.0.2.128",
    "global": False,
    "manageable": True,
    "management": False,
    "netmask": "255.255.255.252",
    "network": "192.0.2.128",
    "public": True,
}


def test_a_block_is_reserved_read_and_released(metal: FakeMetal) -> None:
    async def scenario() -> None:
        block = await driver(BLOCK)
        inputs = await block.inputs(WANTED)
        assert inputs == {**WANTED, "type": "public_ipv4", "__defaults": ["type"]}
        identifier, state = await block.create(inputs)
        assert metal.requests[-1] == (
            "POST",
            f"/metal/v1/projects/{PROJECT}/ips",
            {"type": "public_ipv4", "quantity": 4, "metro": "lb", "details": "api", "tags": ["b", "a"]},
        )
        kept = plain_map(state)
        ordered = {"tags": ["a", "b"]}
        assert kept == {**WANTED, **ADDRESSES, **ordered, "id": identifier, "metro": "lb", "type": "public_ipv4"}
        assert await block.diff(kept, inputs) == {}
        assert await block.read(identifier, kept, inputs) == (identifier, kept, {**inputs, **ordered})
        assert await block.update(identifier, kept, inputs) == kept
        _, imported, its_inputs = await block.read(identifier, {}, {})
        assert imported == kept
        assert its_inputs == {**WANTED, **ordered, "metro": "lb", "__defaults": []}
        await block.delete(identifier, kept)
        await block.delete(identifier, kept)
        assert metal.ips == {}
        assert await block.read(identifier, kept, inputs) == ("", {}, {})
        with pytest.raises(PluginError, match="no longer exists: refresh"):
            await block.update(identifier, kept, inputs)

    run(scenario())


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"quantity": 8}, {"quantity": "UPDATE_REPLACE"}),
        ({"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
        ({"description": "x"}, {"description": "UPDATE_REPLACE"}),
        ({"tags": ["a", "b"]}, {}),
        ({"tags": ["b", "c"]}, {"tags[1]": "UPDATE_REPLACE"}),
        ({"type": "global_ipv4"}, {"type": "UPDATE_REPLACE"}),
        ({"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ],
)
def test_every_change_of_a_block_replaces_it(change: dict[str, Any], found: dict[str, str]) -> None:
    async def scenario() -> None:
        block = await driver(BLOCK)
        inputs = await block.inputs(WANTED)
        assert await block.diff({**ADDRESSES, **WANTED, "type": "public_ipv4"}, {**inputs, **change}) == found

    run(scenario())


def test_a_block_of_a_facility_is_told_its_metro(metal: FakeMetal) -> None:
    async def scenario() -> None:
        block = await driver(BLOCK)
        inputs = await block.inputs({"projectId": PROJECT, "quantity": 1, "facility": "lab1"})
        _, state = await block.create(inputs)
        kept = plain_map(state)
        assert (kept["facility"], kept["metro"], kept["tags"]) == ("lab1", "lb", [])
        assert await block.diff(kept, inputs) == {}

    run(scenario())


@pytest.mark.parametrize(
    ("token", "inputs", "wrong"),
    [
        (BLOCK, {}, {"projectId", "quantity"}),
        (BLOCK, {**WANTED, "quantity": 3}, {"quantity"}),
        (BLOCK, {**WANTED, "quantity": 0}, {"quantity"}),
        (BLOCK, {**WANTED, "type": "vrf"}, {"type"}),
        (BLOCK, {**WANTED, "type": "global_ipv4"}, {"metro"}),
        (BLOCK, {**WANTED, "facility": "lab1"}, {"facility"}),
        (BLOCK, {"projectId": PROJECT, "quantity": 1, "type": "public_ipv4"}, {"metro"}),
        (BLOCK, {**WANTED, "customData": "{}"}, {"customData"}),
        (SESSION, {"deviceId": "d", "addressFamily": "ipx"}, {"addressFamily"}),
    ],
)
def test_wrong_inputs_are_refused(token: str, inputs: dict[str, Any], wrong: set[str]) -> None:
    async def scenario() -> None:
        _, failures = await (await driver(token)).check(inputs)
        assert set(failures) == wrong

    run(scenario())


def test_a_default_type_needs_a_place_as_well() -> None:
    """The default is filled in before the rules are looked at, or forgetting the metro would show at the order."""

    async def scenario() -> None:
        _, failures = await (await driver(BLOCK)).check({"projectId": UNKNOWN, "quantity": UNKNOWN})
        assert failures == {"metro": "one of metro and facility is required"}

    run(scenario())


def test_a_block_that_has_to_be_approved_is_kept_and_looked_at_again(metal: FakeMetal) -> None:
    async def scenario() -> None:
        block = await driver(BLOCK)
        inputs = await block.inputs(WANTED)
        metal.block_state = "pending"
        with pytest.raises(InitFailed, match="waits for approval") as failure:
            await block.create(inputs)
        identifier, kept = failure.value.resource_id, plain_map(failure.value.properties)
        with pytest.raises(PluginError, match="still waits for approval"):
            await block.update(identifier, kept, inputs)
        metal.ips[identifier]["state"] = "created"
        assert (await block.update(identifier, kept, inputs))["cidrNotation"] == "192.0.2.128/30"

    run(scenario())


async def opened_session(metal: FakeMetal, **changes: Any) -> tuple[Driver, dict[str, Any]]:
    device = metal.add_device()
    session = await driver(SESSION)
    return session, await session.inputs({"deviceId": device["id"], "addressFamily": "ipv4", **changes})


def test_sessions_are_opened_and_closed(metal: FakeMetal) -> None:
    async def scenario() -> None:
        session, inputs = await opened_session(metal)
        assert (inputs["defaultRoute"], inputs["__defaults"]) == (False, ["defaultRoute"])
        identifier, state = await session.create(inputs)
        assert metal.requests[-1][2] == {"address_family": "ipv4", "default_route": False}
        kept = plain_map(state)
        assert kept == {
            "id": identifier,
            "deviceId": inputs["deviceId"],
            "addressFamily": "ipv4",
            "defaultRoute": False,
            "status": "unknown,unknown",
        }
        assert await session.diff(kept, inputs) == {}
        assert await session.diff(kept, {**inputs, "defaultRoute": True}) == {"defaultRoute": "UPDATE_REPLACE"}
        metal.sessions[identifier]["status"] = "up,up"
        assert await session.read(identifier, kept, inputs) == (identifier, {**kept, "status": "up,up"}, inputs)
        await session.delete(identifier, kept)
        await session.delete(identifier, kept)
        assert metal.sessions == {}
        assert await session.read(identifier, kept, inputs) == ("", {}, {})

    run(scenario())


@pytest.mark.parametrize(("token", "output"), [(BLOCK, "cidrNotation"), (SESSION, "status")])
def test_a_preview_asks_nobody(monkeypatch: pytest.MonkeyPatch, token: str, output: str) -> None:
    monkeypatch.setenv("METAL_API_URL", "http://127.0.0.1:1")

    async def scenario() -> None:
        resource = await driver(token)
        inputs = {BLOCK: WANTED, SESSION: {"deviceId": UNKNOWN, "addressFamily": "ipv4"}}[token]
        identifier, state = await resource.create(await resource.inputs(inputs), preview=True)
        assert identifier == ""
        assert plain_map(state)[output] == UNKNOWN

    run(scenario())


@pytest.mark.parametrize(("kind", "after"), [("status", True), ("status", False), ("reset", True), ("half", True)])
@pytest.mark.parametrize("token", [BLOCK, SESSION])
def test_what_an_order_may_have_made_is_looked_for(metal: FakeMetal, token: str, kind: str, after: bool) -> None:
    clocks(metal)
    suffix = "/sessions" if token == SESSION else "/ips"
    metal.faults.append(Fault("POST", suffix, kind, after=after))

    async def scenario() -> None:
        if token == BLOCK:
            metal.add_block(PROJECT, {"type": "public_ipv4", "quantity": 4, "details": "another"})
            resource = await driver(BLOCK)
            inputs = await resource.inputs(WANTED)
        else:
            resource, inputs = await opened_session(metal)
        before = {*metal.ips, *metal.sessions}
        identifier, _ = await resource.create(inputs)
        assert {*metal.ips, *metal.sessions} - before == {identifier}
        assert metal.count("POST", suffix) == (1 if after else 2)

    run(scenario())


def test_a_block_without_a_mark_is_not_guessed_at(metal: FakeMetal) -> None:
    clocks(metal)
    metal.faults.append(Fault("POST", "/ips", "reset", after=True))

    async def scenario() -> None:
        block = await driver(BLOCK)
        with pytest.raises(PluginError, match="cannot be looked for: look in the project"):
            await block.create(await block.inputs({"projectId": PROJECT, "quantity": 1, "metro": "lb"}))
        assert metal.count("POST", "/ips") == 1

    run(scenario())
