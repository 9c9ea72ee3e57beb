"""Hardware reservations: what sales makes, what orders take, what comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, World, world
from tests.lab.metal_api.judging import judged

RESERVATIONS = f"{PROJECT}/hardware-reservations"
NEXT = {"hardware_reservation_id": "next-available"}


async def sold(lab: World, **body: Any) -> list[dict[str, Any]]:
    """New reservations."""
    wanted = {"plan": "c3.small.x86", "facility": "lab1", **body}
    answer = await lab.client.post("/lab/hardware-reservations", json=wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()["hardware_reservations"]


async def refused(lab: World, **changes: Any) -> list[str]:
    """Why an order is refused."""
    answer = await lab.client.post(f"{PROJECT}/devices", json={**ORDER, **changes})
    assert answer.status_code == 422, answer.text
    return answer.json()["errors"]


async def shown(lab: World, reservation: dict[str, Any]) -> dict[str, Any]:
    """A reservation as it is now."""
    return (await lab.client.get(reservation["href"])).json()


def test_a_reservation_comes_back_when_its_device_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            (reservation,) = await sold(lab)
            assert (reservation["provisionable"], reservation["spare"]) == (True, False)
            assert "device" not in reservation
            device = await lab.order(hardware_reservation_id=reservation["id"])
            assert device["hardware_reservation"] == {"href": reservation["href"]}
            assert device["switch_uuid"] == reservation["switch_uuid"]
            query = {"include": "hardware_reservation.project,hardware_reservation.facility"}
            whole = (await lab.client.get(device["href"], params=query)).json()["hardware_reservation"]
            assert (whole["id"], whole["project"]["id"]) == (reservation["id"], IDENTITY.project_id)
            taken = await shown(lab, reservation)
            assert (taken["provisionable"], taken["device"]["href"]) == (False, device["href"])
            assert await refused(lab, hardware_reservation_id=reservation["id"]) == [
                f"Hardware reservation {reservation['id']} is not provisionable"
            ]
            lab.clock.runs.clear()
            await lab.client.delete(device["href"])
            assert (await shown(lab, reservation))["provisionable"] is False, "it is still deprovisioning"
            lab.clock.runs.set()
            await lab.until(lambda: device["id"] not in lab.devices)
            assert (await shown(lab, reservation)) == reservation
            await lab.order(hardware_reservation_id=reservation["id"])

    asyncio.run(run())


def test_the_next_available_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert await refused(lab, **NEXT) == ["No hardware reservation for c3.small.x86 is available in lab1, lab2"]
            await sold(lab, plan="m3.large.x86")
            await sold(lab, facility="da11")
            await sold(lab, spare=True)
            await sold(lab, need_of_service=True)
            assert await refused(lab, **NEXT) == ["No hardware reservation for c3.small.x86 is available in lab1, lab2"]
            wanted = await sold(lab, count=2)
            devices = [await lab.order(**NEXT) for _ in wanted]
            assert [device["hardware_reservation"]["href"] for device in devices] == [each["href"] for each in wanted]
            assert len(await refused(lab, **NEXT)) == 1
            assert (await lab.order(metro="da", **NEXT))["facility"]["code"] == "da11"

    asyncio.run(run())


def test_the_one_named_must_fit(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            (reservation,) = await sold(lab, facility="da11", plan="m3.large.x86")
            identity = reservation["id"]
            assert await refused(lab, hardware_reservation_id=identity) == [
                f"Hardware reservation {identity} is for m3.large.x86, not for c3.small.x86",
                f"Hardware reservation {identity} is in da11 (da)",
            ]
            other = (await lab.client.post("/metal/v1/projects", json={"name": "other"})).json()["id"]
            (foreign,) = await sold(lab, project_id=other)
            assert await refused(lab, hardware_reservation_id=foreign["id"]) == [
                f"Hardware reservation {foreign['id']} is not in this project"
            ]
            assert await refused(lab, **NEXT, spot_instance=True, spot_price_max=1) == [
                "Spot instances cannot be on a hardware reservation"
            ]
            device = await lab.order(hardware_reservation_id=identity, plan="m3.large.x86", metro="da")
            assert device["facility"]["code"] == "da11"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [0, 1, 2, 3]),
        ({"state": "spare"}, [1]),
        ({"state": "need_of_service"}, [2]),
        ({"state": "active"}, [0, 3]),
        ({"provisionable": "only"}, [3]),
        ({"query": "da11"}, [3]),
        ({"query": "LAB-worker"}, [0]),
        ({"per_page": "2", "page": "2"}, [2, 3]),
    ],
)
def test_lists_are_filtered(tmp_path: Path, query: dict[str, str], found: list[int]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            kinds: list[dict[str, Any]] = [{}, {"spare": True}, {"need_of_service": True}, {"facility": "da11"}]
            every = [(await sold(lab, **kind))[0]["id"] for kind in kinds]
            await lab.order(**NEXT)
            listed = (await lab.client.get(RESERVATIONS, params=query)).json()["hardware_reservations"]
            assert [every.index(entry["id"]) for entry in listed] == found

    asyncio.run(run())


def test_one_may_be_sold_with_a_given_id_and_only_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            identity = "7d2c4f6e-0001-4c35-9d5e-5a0f3c1b2a01"
            first, second = [await sold(lab, id=identity) for _ in range(2)]
            assert [each["id"] for each in (*first, *second)] == [identity, identity]
            assert len((await lab.client.get(RESERVATIONS)).json()["hardware_reservations"]) == 1
            bad = {"plan": "c3.small.x86", "facility": "lab1"}
            for wrong in ({"id": "mine"}, {"id": identity, "count": 2}):
                answer = await lab.client.post("/lab/hardware-reservations", json={**bad, **wrong})
                assert answer.json()["errors"] == ["id must be the UUID of one reservation"]

    asyncio.run(run())


def test_the_labs_own_routes_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            bad = {"plan": "huge", "facility": "xx", "colour": "red"}
            answer = await lab.client.post("/lab/hardware-reservations", json=bad)
            assert (answer.status_code, len(answer.json()["errors"])) == (422, 3)
            (reservation,) = await sold(lab)
            path = f"/lab/hardware-reservations/{reservation['id']}"
            device = await lab.order(**NEXT)
            assert (await lab.client.delete(path)).status_code == 422
            await lab.client.delete(device["href"])
            await lab.until(lambda: not lab.devices)
            assert (await lab.client.delete(path)).status_code == 204
            assert (await lab.client.delete(path)).status_code == 404

    asyncio.run(run())


def test_they_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            (reservation,) = await sold(lab, custom_rate=100.5, termination_time="2027-01-01T00:00:00Z")
            device = await lab.order(**NEXT)
            before = await shown(lab, reservation)
        async with world(tmp_path) as lab:
            assert await shown(lab, reservation) == before
            assert before["device"]["href"] == device["href"]
            assert (before["custom_rate"], before["termination_time"]) == (100.5, "2027-01-01T00:00:00Z")

    asyncio.run(run())
