"""Hardware reservations: what sales makes, what orders take, what comes back."""

from __future__ import annotations

from typing import Any

from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, World

RESERVATIONS = f"{PROJECT}/hardware-reservations"
NEXT = {"hardware_reservation_id": "next-available"}
NONE = "No hardware reservation for c3.small.x86 is available in lab1, lab2"


async def sold(lab: World, **body: Any) -> dict[str, Any]:
    """A new reservation."""
    return await lab.post("/lab/hardware-reservations", {"plan": "c3.small.x86", "facility": "lab1", **body})


async def refused(lab: World, **changes: Any) -> list[str]:
    """Why an order is refused."""
    return await lab.refused(f"{PROJECT}/devices", {**ORDER, **changes})


async def test_a_reservation_comes_back_when_its_device_is_gone(lab: World) -> None:
    reservation = await sold(lab)
    assert reservation["provisionable"] is True
    assert "device" not in reservation
    device = await lab.order(hardware_reservation_id=reservation["id"])
    assert device["hardware_reservation"] == {"href": reservation["href"]}
    assert device["switch_uuid"] == reservation["switch_uuid"]
    include = "hardware_reservation.project,hardware_reservation.facility"
    whole = (await lab.get(device["href"], include=include))["hardware_reservation"]
    assert (whole["id"], whole["project"]["id"]) == (reservation["id"], IDENTITY.project_id)
    taken = await lab.get(reservation["href"])
    assert (taken["provisionable"], taken["device"]["href"]) == (False, device["href"])
    error = f"Hardware reservation {reservation['id']} is not provisionable"
    assert await refused(lab, hardware_reservation_id=reservation["id"]) == [error]
    lab.clock.runs.clear()
    await lab.delete(device["href"])
    assert (await lab.get(reservation["href"]))["provisionable"] is False, "it is still deprovisioning"
    lab.clock.runs.set()
    await lab.gone(device)
    assert (await lab.get(reservation["href"])) == reservation
    await lab.order(hardware_reservation_id=reservation["id"])


async def test_the_next_available_one(lab: World) -> None:
    assert await refused(lab, **NEXT) == [NONE]
    await sold(lab, plan="m3.large.x86")
    await sold(lab, facility="da11")
    assert await refused(lab, **NEXT) == [NONE]
    wanted = [await sold(lab), await sold(lab)]
    devices = [await lab.order(**NEXT) for _ in wanted]
    assert [device["hardware_reservation"]["href"] for device in devices] == [each["href"] for each in wanted]
    assert await refused(lab, **NEXT) == [NONE]
    assert (await lab.order(metro="da", **NEXT))["facility"]["code"] == "da11"
    assert len((await lab.get(RESERVATIONS, include="plan,facility,device"))["hardware_reservations"]) == 4


async def test_the_one_named_must_fit(lab: World) -> None:
    identity = (await sold(lab, facility="da11", plan="m3.large.x86"))["id"]
    assert await refused(lab, hardware_reservation_id=identity) == [
        f"Hardware reservation {identity} is for m3.large.x86, not for c3.small.x86",
        f"Hardware reservation {identity} is in da11 (da)",
    ]
    assert await refused(lab, hardware_reservation_id="other") == ["Hardware reservation other is not in this project"]
    device = await lab.order(hardware_reservation_id=identity, plan="m3.large.x86", metro="da")
    assert device["facility"]["code"] == "da11"


async def test_one_may_be_sold_with_a_given_id_and_only_once(lab: World) -> None:
    identity = "7d2c4f6e-0001-4c35-9d5e-5a0f3c1b2a01"
    assert {(await sold(lab, id=identity))["id"] for _ in range(2)} == {identity}
    assert len((await lab.get(RESERVATIONS))["hardware_reservations"]) == 1
    wrong = {"plan": "huge", "facility": "xx", "colour": "red", "id": "mine"}
    assert len(await lab.refused("/lab/hardware-reservations", wrong)) == 4
