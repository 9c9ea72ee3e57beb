"""Plans, prices, places, and how much of them there is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import ORDER, PROJECT, World, world

API = "/metal/v1"


async def got(lab: World, path: str) -> Any:
    """What a GET answers."""
    answer = await lab.client.get(f"{API}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def told(lab: World, **what: Any) -> None:
    """Tell the lab what there is to order."""
    answer = await lab.client.put("/lab/capacity", json=what)
    assert answer.status_code == 200, answer.text


async def refused(lab: World, **changes: Any) -> list[str]:
    """Why an order is refused."""
    answer = await lab.client.post(f"{PROJECT}/devices", json={**ORDER, **changes})
    assert answer.status_code == 422, answer.text
    return answer.json()["errors"]


def test_plans_say_where_they_are_and_what_they_cost(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            (small,) = (await got(lab, "plans?slug=c3.small.x86&include=available_in_metros"))["plans"]
            assert small["pricing"] == {"hour": 0.75}
            by_metro = {entry["code"]: entry.get("price") for entry in small["available_in_metros"]}
            assert (by_metro["sp"], by_metro["da"]) == ({"hour": 1.05}, None)
            assert small["deployment_types"] == ["on_demand", "spot_market"]
            (arm,) = (await got(lab, "plans?slug=c3.large.arm64"))["plans"]
            assert len(arm["available_in_metros"]) == 5
            assert [plan["slug"] for plan in (await got(lab, "plans?categories[]=storage"))["plans"]] == [
                "s3.xlarge.x86"
            ]
            (reserved,) = (await got(lab, "plans?type=workload_optimized"))["plans"]
            assert reserved["deployment_types"] == []
            systems = {
                entry["slug"]: entry["provisionable_on"]
                for entry in (await got(lab, "operating-systems"))["operating_systems"]
            }
            assert ("c3.large.arm64" in systems["custom_ipxe"], "c3.large.arm64" in systems["windows_2022"]) == (
                True,
                False,
            )

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"plan": "c3.large.arm64", "operating_system": "windows_2022"},
            "windows_2022 is not provisionable on c3.large.arm64",
        ),
        (
            {"plan": "c3.large.arm64", "metro": "ny"},
            "The metro ny has no provisionable c3.large.arm64 servers matching your criteria",
        ),
        ({"plan": "n3.xlarge.opt-m4s2"}, "n3.xlarge.opt-m4s2 is not available on demand"),
    ],
)
def test_plan_system_and_place_must_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert await refused(lab, **change) == [message]

    asyncio.run(run())


def test_an_arm64_device_can_be_ordered(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order(plan="c3.large.arm64")
            assert (await lab.booted(device["id"]))["state"] == "active"

    asyncio.run(run())


def test_orders_take_from_what_there_is_and_give_it_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            await told(lab, metro="da", plan="c3.small.x86", servers=2)
            order = {"metro": None, "facility": ["da11", "da6"]}
            placed = [(await lab.order(**order)) for _ in range(4)]
            assert [device["facility"]["code"] for device in placed] == ["da11", "da11", "da6", "da6"]
            end = "has no provisionable c3.small.x86 servers matching your criteria"
            assert await refused(lab, metro="da") == [f"The metro da {end}"]
            assert await refused(lab, **order) == [f"The facility da11, da6 {end}"]
            assert (await lab.order(metro=None, facility=["da11", "any"]))["facility"]["code"] == "lab1"
            assert (await lab.order(metro="any"))["metro"]["code"] == "lb"
            await lab.client.delete(placed[0]["href"])
            assert await refused(lab, metro="da") == [f"The metro da {end}"]
            await lab.until(lambda: placed[0]["id"] not in lab.devices)
            assert (await lab.order(metro="da"))["facility"]["code"] == "da11"

    asyncio.run(run())


def test_capacity_is_checked_by_quantity(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            await told(lab, facility="da11", plan="c3.small.x86", servers=2)
            await told(lab, facility="da6", servers=1)
            await told(lab, metro="ny", servers=0)

            async def check(kind: str, *wanted: tuple[str, str | int]) -> list[bool]:
                path = "capacity/metros" if kind == "metro" else "capacity"
                servers = [{kind: place, "plan": "c3.small.x86", "quantity": quantity} for place, quantity in wanted]
                answer = await lab.client.post(f"{API}/{path}", json={"servers": servers})
                assert [entry["quantity"] for entry in answer.json()["servers"]] == [each for _, each in wanted]
                return [entry["available"] for entry in answer.json()["servers"]]

            assert await check("facility", ("da11", "2"), ("da11", "3"), ("lab1", 1000)) == [True, False, True]
            assert await check("metro", ("da", "3"), ("da", "4"), ("ny", "1")) == [True, False, False]
            answer = await lab.client.post(
                f"{API}/capacity/metros", json={"servers": [{"metro": "zz", "plan": "huge", "quantity": "some"}]}
            )
            assert answer.json() == {
                "errors": ["zz is not a valid metro", "huge is not a valid plan", "Quantity must be a number"]
            }
            assert (await lab.client.delete("/lab/capacity")).status_code == 204
            assert await check("metro", ("ny", "5")) == [True]

    asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [
        {"servers": 1},
        {"facility": "da11", "metro": "da"},
        {"metro": "da", "level": "limited"},
        {"metro": "da", "servers": -1},
        {"metro": "da", "plan": "huge"},
        {"metro": "da", "count": 1},
    ],
)
def test_what_cannot_be_told_of_capacity_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert (await lab.client.put("/lab/capacity", json=body)).status_code == 422
            assert (await lab.client.get("/lab/capacity")).json() == {"capacity": []}

    asyncio.run(run())
