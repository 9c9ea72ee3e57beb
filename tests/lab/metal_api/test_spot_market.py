"""The spot market: prices, bids, devices that come and go with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.devices import ordering
from lab.metal_api.spot_market.models import AGAIN, SpotMarketRequest
from tests.lab.metal_api.harness import ORDER, PROJECT, PUBLIC_KEY, World, world
from tests.lab.metal_api.judging import judged

REQUESTS = f"{PROJECT}/spot-market-requests"
PRICES = "/metal/v1/market/spot/prices"
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
    answer = await lab.client.post(REQUESTS, json={**BID, **changes})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def costs(lab: World, price: float, **place: str) -> None:
    """Have the plan of the orders cost something else from now on."""
    body = {"plan": "c3.small.x86", "price": price, **(place or {"metro": "lb"})}
    answer = await lab.client.post("/lab/spot-prices", json=body)
    assert answer.status_code == 201, answer.text


async def devices(lab: World, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a request."""
    answer = await lab.client.get(request["href"], params={"include": "devices"})
    return answer.json()["devices"]


def test_prices(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            facilities = (await lab.client.get(PRICES)).json()["spot_market_prices"]
            assert facilities["lab1"]["c3.small.x86"] == {"price": 0.15}
            assert facilities["sp4"]["c3.small.x86"] == {"price": 0.21}, "where plans cost more"
            assert "c3.large.arm64" not in facilities["am6"], "where there are none"
            assert "s3.xlarge.x86" not in facilities["lab1"], "what is never on the market"
            await costs(lab, 0.3, facility="lab2")
            query = {"metro": "lb", "plan": "c3.small.x86"}
            metros = (await lab.client.get(f"{PRICES}/metros", params=query)).json()
            assert metros == {"spot_market_prices": {"lb": {"c3.small.x86": {"price": 0.15}}}}
            one = (await lab.client.get(PRICES, params={"facility": "lab2", "plan": "c3.small.x86"})).json()
            assert one == {"spot_market_prices": {"lab2": {"c3.small.x86": {"price": 0.3}}}}
            assert (await lab.client.get(PRICES, params={"facility": "xx"})).status_code == 422

    asyncio.run(run())


def test_a_request_makes_devices(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            request = await bid(lab, devices_max=2)
            assert "facilities" not in request
            first, second = await devices(lab, request)
            assert [first["hostname"], second["hostname"]] == ["lab-worker-0-1", "lab-worker-0-2"]
            for device in (first, second):
                assert (device["spot_instance"], device["spot_price_max"]) == (True, 0.4)
                assert (await lab.booted(device["id"]))["state"] == "active"
            query = {"include": "project,metro,plan,devices"}
            shown = (await lab.client.get(request["href"], params=query)).json()
            assert (shown["metro"]["code"], shown["plan"]["slug"], shown["project"]["name"]) == (
                "lb",
                "c3.small.x86",
                "lab",
            )
            listed = (await lab.client.get(REQUESTS)).json()["spot_market_requests"]
            assert [entry["id"] for entry in listed] == [request["id"]]
            spot = (await lab.client.get(f"{PROJECT}/devices", params={"type": "spot"})).json()["devices"]
            assert len(spot) == 2

    asyncio.run(run())


def test_facilities_are_a_list_for_packngo(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab, metro=None, facilities=["lab2", "da11"], devices_max=1)
            (device,) = await devices(lab, request)
            assert (device["facility"]["code"], device["hostname"]) == ("lab2", "lab-worker-0")
            query = {"include": "project,devices,facilities,metro"}
            shown = (await lab.client.get(request["href"], params=query)).json()
            assert [facility["code"] for facility in shown["facilities"]] == ["lab2", "da11"]
            assert "metro" not in shown

    asyncio.run(run())


@pytest.mark.parametrize("force", ["query", "body", None])
def test_a_deleted_request_takes_its_devices_along_if_asked(tmp_path: Path, force: str | None) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab)
            (device,) = await devices(lab, request)
            query = {"force_termination": "true"} if force == "query" else {}
            body = {"force_termination": True} if force == "body" else None
            answer = await lab.client.request("DELETE", request["href"], params=query, json=body)
            assert answer.status_code == 204
            assert (await lab.client.get(request["href"])).status_code == 404
            if force is None:
                assert (await lab.device(device["id"]))["state"] != "deprovisioning"
            else:
                await lab.until(lambda: device["id"] not in lab.devices)

    asyncio.run(run())


def test_a_low_bid_waits_until_the_price_falls(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab, max_bid_price=0.1)
            assert await devices(lab, request) == []
            await costs(lab, 0.1)
            (device,) = await devices(lab, request)
            assert (await lab.booted(device["id"]))["state"] == "active"

    asyncio.run(run())


def test_who_is_outbid_has_two_minutes(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab)
            (device,) = await devices(lab, request)
            await lab.booted(device["id"])
            bystander = await lab.order(hostname="bystander")
            await costs(lab, 0.5)
            shown = await lab.device(device["id"])
            now = lab.clock.now()
            assert shown["termination_time"] > now.strftime("%Y-%m-%dT%H:%M:%SZ")
            async with lab.machine(lab.devices[device["id"]].public_ipv4) as machine:
                told = (await machine.get("/metadata")).json()["spot"]
            assert told == {"termination_time": shown["termination_time"]}
            assert (await lab.device(bystander["id"]))["termination_time"] is None
            lab.elapse(121)
            await lab.client.get(REQUESTS)
            await lab.until(lambda: device["id"] not in lab.devices)
            assert await devices(lab, request) == []
            await costs(lab, 0.2)
            (again,) = await devices(lab, request)
            assert again["id"] != device["id"], "the request gets another one when it can be paid again"

    asyncio.run(run())


def test_eviction_on_demand(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab, devices_max=2)
            first, second = await devices(lab, request)
            body = {"id": first["id"], "seconds": 0}
            answer = await lab.client.post("/lab/spot-evictions", json=body)
            assert (answer.status_code, answer.json()) == (202, {"devices": [first["id"]]})
            await lab.client.get(REQUESTS)
            await lab.until(lambda: first["id"] not in lab.devices)
            assert [device["id"] for device in await devices(lab, request)] == [second["id"]], "it is not replaced"
            answer = await lab.client.post("/lab/spot-evictions", json={"id": request["id"]})
            assert answer.json() == {"devices": [second["id"]]}
            ordinary = await lab.order()
            assert (await lab.client.post("/lab/spot-evictions", json={"id": ordinary["id"]})).status_code == 422

    asyncio.run(run())


def test_a_request_ends_when_it_says(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab, end_at="2026-01-01T12:00:00Z", devices_max=1)
            (device,) = await devices(lab, request)
            lab.elapse(11 * 3600)
            assert len(await devices(lab, request)) == 1
            lab.elapse(2 * 3600)
            await lab.client.get(REQUESTS)
            await lab.until(lambda: device["id"] not in lab.devices)
            assert await devices(lab, request) == []
            assert (await lab.client.get(request["href"])).json()["end_at"] == "2026-01-01T12:00:00Z"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({"devices_min": 3}, ["Devices max must be greater than or equal to devices min"]),
        ({"devices_min": 0}, ["Devices min must be greater than or equal to 1"]),
        ({"max_bid_price": 0}, ["Max bid price must be greater than 0"]),
        ({"max_bid_price": None}, ["Max bid price must be greater than 0"]),
        ({"metro": None}, ["Metro can't be blank"]),
        ({"metro": "xx"}, ["xx is not a valid metro"]),
        ({"facilities": ["lab1"]}, ["Cannot specify both metro and facilities"]),
        ({"metro": None, "facilities": ["xx1"]}, ["xx1 is not a valid facility"]),
        ({"end_at": "2020-01-01T00:00:00Z"}, ["End at must be in the future"]),
        ({"instance_parameters": {}}, ["Instance parameters can't be blank"]),
        ({"instance_parameters": {**PARAMETERS, "plan": "huge"}}, ["huge is not a valid plan"]),
        (
            {"instance_parameters": {**PARAMETERS, "plan": "s3.xlarge.x86"}},
            ["s3.xlarge.x86 is not available spot market"],
        ),
        (
            {"devices_max": 2, "instance_parameters": {**PARAMETERS, "hostnames": ["a"]}},
            ["Hostnames must be as many as devices max, 2"],
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], errors: list[str]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post(REQUESTS, json={**BID, **changes})
            assert (answer.status_code, answer.json()) == (422, {"errors": errors})
            assert not lab.devices
            assert (await lab.client.get(REQUESTS)).json() == {"spot_market_requests": []}

    asyncio.run(run())


def test_all_that_are_needed_or_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            for facility in ("lab1", "lab2"):
                told = {"facility": facility, "plan": "c3.small.x86", "servers": 1}
                assert (await lab.client.put("/lab/capacity", json=told)).is_success
            three = await bid(lab, devices_min=3, devices_max=3)
            assert await devices(lab, three) == []
            assert not lab.devices
            two = await bid(lab, devices_min=1, devices_max=3)
            assert {device["facility"]["code"] for device in await devices(lab, two)} == {"lab1", "lab2"}

    asyncio.run(run())


def test_spot_devices_without_a_request(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order(spot_instance=True, spot_price_max="0.2")
            assert (device["spot_instance"], device["spot_price_max"]) == (True, 0.2)
            for price, error in ((None, "can't be blank"), ("much", "not a number"), (0.1, "below the current price")):
                order = {**ORDER, "spot_instance": True, "spot_price_max": price}
                answer = await lab.client.post(f"{PROJECT}/devices", json=order)
                assert answer.status_code == 422
                assert error in answer.json()["errors"][0]

    asyncio.run(run())


def test_it_survives_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            request = await bid(lab, max_bid_price=0.1, end_at="2026-01-02T00:00:00Z")
            await costs(lab, 0.12)
        async with world(tmp_path) as lab:
            assert (await lab.client.get(request["href"])).json() == request
            await costs(lab, 0.1)
            assert len(await devices(lab, request)) == 1

    asyncio.run(run())


def orders_counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The host names of all devices that are ordered from now on, also in vain."""
    ordered: list[str] = []
    really = ordering.order

    def order(*arguments: Any) -> Any:
        ordered.append(arguments[-1]["hostname"])
        return really(*arguments)

    monkeypatch.setattr(ordering, "order", order)
    return ordered


def test_who_waits_costs_others_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait: none is tried before there is a server at its price, and then as many as there are."""

    async def run() -> None:
        async with world(tmp_path) as lab:
            await costs(lab, 0.5)
            made = [await bid(lab, instance_parameters={**PARAMETERS, "hostname": f"w{n}"}) for n in range(60)]
            ordered = orders_counted(monkeypatch)
            for _ in range(3):
                assert await devices(lab, made[0]) == []
            assert ordered == []
            told = {"metro": "lb", "plan": "c3.small.x86", "servers": 1}
            assert (await lab.client.put("/lab/capacity", json=told)).is_success
            await costs(lab, 0.4)
            assert len(await devices(lab, made[0])) == 1
            for _ in range(3):
                assert await devices(lab, made[-1]) == []
            there = len(lab.devices)
            assert ordered == [f"w{n}" for n in range(there)]
            assert 0 < there < 10, "a server in each facility of the metro"

    asyncio.run(run())


@pytest.mark.parametrize("fault", [True, False])
def test_what_a_waiting_request_meets_is_told_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: bool
) -> None:
    """And not answered to whoever asks for something else then. It is tried again."""

    async def run() -> None:
        async with world(tmp_path) as lab:
            key = {"label": "ours", "key": PUBLIC_KEY}
            keys = (await lab.client.post(f"{PROJECT}/ssh-keys", json=key)).json()
            parameters = {**PARAMETERS, "project_ssh_keys": [keys["id"]]}
            request = await bid(lab, max_bid_price=0.1, instance_parameters=parameters)
            really = ordering.order
            if fault:
                monkeypatch.setattr(ordering, "order", lambda *_: {}["nothing"])
                why = "Internal error: KeyError: 'nothing'"
            else:
                assert (await lab.client.delete(f"/metal/v1/ssh-keys/{keys['id']}")).is_success
                why = f"project_ssh_keys: {keys['id']} is not a key of this project"
            await costs(lab, 0.1)
            for _ in range(3):
                assert (await lab.client.get(PRICES)).status_code == 200
                lab.elapse(AGAIN)
            assert await devices(lab, request) == []
            assert not lab.devices
            assert lab.account.table(SpotMarketRequest)[request["id"]].refusal == why
            assert ("Traceback" in capsys.readouterr().err) == fault
            if fault:
                monkeypatch.setattr(ordering, "order", really)
                lab.elapse(AGAIN)
                assert len(await devices(lab, request)) == 1

    asyncio.run(run())
