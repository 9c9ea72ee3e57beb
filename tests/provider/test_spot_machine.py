"""SpotMachine against a Metal API on loopback: got, evicted, succeeded, given back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import Resource, configured, until

pytestmark = pytest.mark.usefixtures("no_waiting")
INPUTS: dict[str, Any] = {"requestId": "r", "machineIds": [], "hostname": "lab-worker-0", "timeoutSeconds": 60}


@pytest.fixture
async def it(metal: FakeMetal) -> Resource:
    metal.spot = {"r": []}
    return await configured("SpotMachine", metal={"authToken": "a-token", "endpoint": metal.url})


def got(metal: FakeMetal, *, walk: tuple[str, ...] = ("provisioning", "active")) -> str:
    """The request gets a machine."""
    device = metal.add("lab-worker-0", [], state="queued")
    metal.devices[device]["walk"] = list(walk)
    metal.spot["r"] = [device]
    return device


async def test_whole_life(it: Resource, metal: FakeMetal) -> None:
    up = asyncio.ensure_future(it.up({**INPUTS, "timeoutSeconds": 1e6}))
    await until(lambda: any("no machine yet" in text for text in it.harness.log.messages))
    device = got(metal)
    state = await up
    assert (it.id, state["machineId"], state["bond"]) == (device, device, f"{device}-bond0")
    assert (state["publicIpv4"], state["privateIpv4"]) == ("198.51.100.1", "203.0.113.1")
    assert await it.changes({**INPUTS, "machineIds": [device]}) == []
    await it.delete()
    assert metal.devices == {} and metal.spot == {}
    await it.delete()


async def test_one_that_was_taken_away_is_told_with_what_to_do(it: Resource, metal: FakeMetal) -> None:
    device = got(metal)
    await it.up(INPUTS)
    del metal.devices[device]
    metal.spot["r"] = []
    await it.refresh()
    assert await it.changes({**INPUTS, "machineIds": []}) == ["machineIds"]
    with pytest.raises(ProviderError, match=r"was terminated.*maxPrice.*make up REPLACE=lab-worker-0"):
        await it.up({**INPUTS, "machineIds": []})
    # Until it has a successor, which takes its place.
    second = got(metal)
    assert (await it.up({**INPUTS, "machineIds": [second]}))["machineId"] == second
    assert any("terminated; continues with its successor" in text for text in it.harness.log.messages)
    await it.delete()
    assert metal.devices == {} and metal.spot == {}


@pytest.mark.parametrize(
    ("walk", "told"),
    [
        (("failed",), "failed to provision: `make up REPLACE=lab-worker-0`"),
        (("provisioning",) * 1000, r"has machine .* which is provisioning after 9 s; it is kept"),
        (None, r"has no machine after 9 s; it is kept.*be higher than platform.spot.maxPrice"),
    ],
)
async def test_one_that_does_not_come(it: Resource, metal: FakeMetal, walk: tuple[str, ...] | None, told: str) -> None:
    if walk is not None:
        got(metal, walk=walk)
    with pytest.raises(ProviderError, match=told):
        await it.up({**INPUTS, "timeoutSeconds": 9})
    assert "r" in metal.spot


async def test_a_request_that_is_gone(it: Resource, metal: FakeMetal) -> None:
    metal.spot = {}
    with pytest.raises(ProviderError, match=r"request of lab-worker-0 \(r\) is gone: run `pulumi refresh`"):
        await it.up(INPUTS)


async def test_check_diff_and_preview(it: Resource, metal: FakeMetal) -> None:
    problems = await it.check({**INPUTS, "hostname": "Not_One", "machineId": "x", "requestId": ""})
    assert [problem.split(" ")[0] for problem in problems] == ["machineId", "requestId", "hostname"]
    assert has_unknown((await it.preview({**INPUTS, "requestId": UNKNOWN}))["machineId"])
    assert metal.requests == []
    device = got(metal)
    await it.up(INPUTS)
    assert await it.changes({**INPUTS, "machineIds": UNKNOWN}) == []
    assert await it.changes({**INPUTS, "machineIds": [device], "requestId": "other"}) == ["requestId"]
