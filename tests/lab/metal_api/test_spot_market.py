"""The spot market: prices, bids, devices that come and go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.metal_api import ordering
from lab.metal_api.spot_market import AGAIN, SpotMarketRequest
from tests.lab.metal_api.harness import API, ORDER, PROJECT, PUBLIC_KEY, World, world

REQUESTS = f"{PROJECT}/spot-market-requests"
PRICES = f"{API}/market/spot/prices"
PARAMETERS = {key: value for key, value in ORDER.items() if key != "metro"}
BID: dict[str, Any] = {
    "metro": "lb",
    "devices_min": 1,
    "devices_max": 1,
    "max_bid_price": 0.4,
    "instance_parameters": PARAMETERS,
}


async def bid(lab: World, **changes: Any) -> dict[str, Any]:
    """A new request."""
    return await lab.post(REQUESTS, {**BID, **changes})


async def servers(lab: World, number: int | None) -> None:
    """Have so many servers of the plan of the orders in each facility."""
    told = {"metro": "lb", "plan": "c3.small.x86", "servers": number}
    await lab.call("PUT", "/lab/capacity", json=told, status=200)


async def devices(lab: World, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a request."""
    return (await lab.get(request["href"], include="devices"))["devices"]


async def test_prices(lab: World) -> None:
    facilities = (await lab.get(PRICES))["spot_market_prices"]
    assert facilities["lab1"]["c3.small.x86"] == {"price": 0.15}
    assert facilities["sp4"]["c3.small.x86"] == {"price": 0.21}, "where plans cost more"
    assert "c3.large.arm64" not in facilities["am6"], "where there are none"
    assert "s3.xlarge.x86" not in facilities["lab1"], "what is never on the market"
    places: list[tuple[str, dict[str, Any]]] = [(f"{PRICES}/metros", {"metro": "lb"}), (PRICES, {"facility": "lab2"})]
    for path, place in places:
        one = await lab.get(path, **place, plan="c3.small.x86")
        (code,) = place.values()
        assert one == {"spot_market_prices": {code: {"c3.small.x86": {"price": 0.15}}}}
        await lab.get(f"{path}?{next(iter(place))}=xx", status=422)
    await lab.get(PRICES, status=422, plan="huge")


async def test_a_request_makes_devices(lab: World) -> None:
    request = await bid(lab, devices_max=2)
    assert "facilities" not in request
    first, second = await devices(lab, request)
    assert [first["hostname"], second["hostname"]] == ["lab-worker-0-1", "lab-worker-0-2"]
    for device in (first, second):
        assert (device["spot_instance"], device["spot_price_max"]) == (True, 0.4)
        assert (await lab.booted(device["id"]))["state"] == "active"
    shown = await lab.get(request["href"], include="project,metro,plan")
    found = (shown["metro"]["code"], shown["plan"]["slug"], shown["project"]["name"])
    assert found == ("lb", "c3.small.x86", "lab")
    assert [entry["id"] for entry in (await lab.get(REQUESTS))["spot_market_requests"]] == [request["id"]]


async def test_facilities_are_a_list_for_packngo(tmp_path: Path) -> None:
    """And a link for the description, which answers are therefore not compared with."""
    async with world(tmp_path) as lab:
        await _a_list_of_facilities(lab)


async def _a_list_of_facilities(lab: World) -> None:
    request = await bid(lab, metro=None, facilities=["lab2", "da11"])
    (device,) = await devices(lab, request)
    assert (device["facility"]["code"], device["hostname"]) == ("lab2", "lab-worker-0")
    shown = await lab.get(request["href"], include="project,devices,facilities,metro")
    assert [facility["code"] for facility in shown["facilities"]] == ["lab2", "da11"]
    assert "metro" not in shown


@pytest.mark.parametrize("force", ["query", "body", None])
async def test_a_deleted_request_takes_its_devices_along_if_asked(lab: World, force: str | None) -> None:
    request = await bid(lab)
    (device,) = await devices(lab, request)
    query = {"force_termination": "true"} if force == "query" else {}
    body = {"force_termination": True} if force == "body" else None
    await lab.call("DELETE", request["href"], params=query, json=body, status=204)
    await lab.get(request["href"], status=404)
    if force is None:
        assert (await lab.device(device["id"]))["state"] != "deprovisioning"
    else:
        await lab.gone(device)


async def test_who_bids_too_little_gets_nothing(lab: World) -> None:
    assert await devices(lab, await bid(lab, max_bid_price=0.1)) == []


async def test_a_device_that_is_evicted_has_notice_and_is_not_replaced(lab: World) -> None:
    request = await bid(lab, devices_max=2)
    first, second = await devices(lab, request)
    answer = await lab.post("/lab/spot-evictions", {"id": first["id"]}, status=202)
    assert answer == {"devices": [first["id"]]}
    end = (await lab.device(first["id"]))["termination_time"]
    async with lab.machine(lab.devices[first["id"]].public_ipv4) as machine:
        assert (await machine.get("/metadata")).json()["spot"] == {"termination_time": end}
    lab.elapse(119)
    assert len(await devices(lab, request)) == 2
    lab.elapse(2)
    await lab.get(REQUESTS)
    await lab.gone(first)
    assert [device["id"] for device in await devices(lab, request)] == [second["id"]]
    ordinary = await lab.order()
    assert "is not a spot device" in (await lab.refused("/lab/spot-evictions", {"id": ordinary["id"]}))[0]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"devices_min": 3}, "Devices max must be greater than or equal to devices min"),
        ({"devices_min": 0}, "Devices min Input should be greater than or equal to 1"),
        ({"max_bid_price": 0}, "Max bid price Input should be greater than 0"),
        ({"max_bid_price": None}, "Max bid price can't be blank"),
        ({"metro": None}, "Metro can't be blank"),
        ({"metro": "xx"}, "xx is not a valid metro"),
        ({"facilities": ["lab1"]}, "Cannot specify both metro and facilities"),
        ({"metro": None, "facilities": ["xx1"]}, "xx1 is not a valid facility"),
        ({"instance_parameters": None}, "Instance parameters can't be blank"),
        ({"instance_parameters": {**PARAMETERS, "plan": "huge"}}, "huge is not a valid plan"),
        (
            {"instance_parameters": {**PARAMETERS, "plan": "s3.xlarge.x86"}},
            "s3.xlarge.x86 is not available spot market",
        ),
    ],
)
async def test_what_is_refused(lab: World, changes: dict[str, Any], error: str) -> None:
    assert await lab.refused(REQUESTS, {**BID, **changes}) == [error]
    assert not lab.devices
    assert await lab.get(REQUESTS) == {"spot_market_requests": []}


@pytest.mark.parametrize(
    "changes",
    [{"end_at": "2027-01-01T00:00:00Z"}, {"instance_parameters": {**PARAMETERS, "hostnames": ["a"]}}],
)
async def test_what_nobody_asks_for_is_refused(lab: World, changes: dict[str, Any]) -> None:
    await lab.refused(REQUESTS, {**BID, **changes}, status=501)


async def test_all_that_are_needed_or_none_and_the_rest_when_there_are_servers(lab: World) -> None:
    await servers(lab, 1)
    three = await bid(lab, devices_min=3, devices_max=3)
    assert await devices(lab, three) == []
    assert not lab.devices
    two = await bid(lab, devices_min=1, devices_max=3)
    assert {device["facility"]["code"] for device in await devices(lab, two)} == {"lab1", "lab2"}
    await servers(lab, None)
    assert [len(await devices(lab, each)) for each in (three, two)] == [3, 3]


@pytest.mark.parametrize("fault", [True, False])
async def test_what_a_waiting_request_meets_is_told_on_it(
    lab: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: bool
) -> None:
    """And not answered to whoever asks for something else then. It is tried again."""
    key = await lab.post(f"{PROJECT}/ssh-keys", {"label": "ours", "key": PUBLIC_KEY})
    await servers(lab, 1)
    taken = [await lab.order(hostname="taken", facility=code, metro=None) for code in ("lab1",)]
    parameters = {**PARAMETERS, "project_ssh_keys": [key["id"]]}
    request = await bid(lab, devices_min=2, devices_max=2, instance_parameters=parameters)
    assert await devices(lab, request) == []
    really = ordering.order
    if fault:
        monkeypatch.setattr(ordering, "order", lambda *_, **__: {}["nothing"])
        why = "Internal error: KeyError: 'nothing'"
    else:
        await lab.delete(key["href"])
        why = f"project_ssh_keys: {key['id']} is not a key of this project"
    await servers(lab, 2)
    for _ in range(3):
        await lab.get(PRICES)
        lab.elapse(AGAIN)
    assert await devices(lab, request) == []
    assert lab.devices.keys() == {each["id"] for each in taken}
    assert lab.account.table(SpotMarketRequest)[request["id"]].refusal == why
    assert ("Traceback" in capsys.readouterr().err) == fault
    if fault:
        monkeypatch.setattr(ordering, "order", really)
        lab.elapse(AGAIN)
        assert len(await devices(lab, request)) == 2
