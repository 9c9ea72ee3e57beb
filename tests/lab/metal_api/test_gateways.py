"""Metal gateways over HTTP: their blocks, their states, their elastic addresses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.ips.models import Reservation
from tests.lab.metal_api.harness import PROJECT, World, world
from tests.lab.metal_api.judging import judged

GATEWAYS = f"{PROJECT}/metal-gateways"


async def posted(lab: World, path: str, body: dict[str, Any], status: int = 201) -> dict[str, Any]:
    """What a POST answers, which must have the status."""
    answer = await lab.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def vlan(lab: World, **body: Any) -> str:
    """The id of a new VLAN."""
    return (await posted(lab, f"{PROJECT}/virtual-networks", {"metro": "lb", **body}))["id"]


async def block(lab: World, quantity: int, metro: str = "lb") -> dict[str, Any]:
    """A new block of public addresses."""
    return await posted(lab, f"{PROJECT}/ips", {"type": "public_ipv4", "quantity": quantity, "metro": metro})


async def types(lab: World) -> list[str]:
    """Of the project's blocks."""
    return [entry["type"] for entry in (await lab.client.get(f"{PROJECT}/ips")).json()["ip_addresses"]]


def test_a_life_with_a_private_block(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            network = await vlan(lab)
            gateway = await posted(lab, GATEWAYS, {"virtual_network_id": network, "private_ipv4_subnet_size": 16})
            inside = gateway["ip_reservation"]
            assert (gateway["state"], inside["type"], inside["cidr"], inside["public"]) == (
                "ready",
                "private_ipv4",
                28,
                False,
            )
            assert inside["gateway"] == "10.64.0.1"
            assert await types(lab) == ["private_ipv4"]
            shown = (await lab.client.get(gateway["href"], params={"include": "project,virtual_network"})).json()
            assert (shown["project"]["name"], shown["virtual_network"]["vxlan"]) == ("lab", 1000)
            (lite,) = shown["virtual_network"]["metal_gateways"]
            assert (lite["gateway_address"], lite["vlan"], lite["state"]) == ("10.64.0.1/28", 1000, "ready")
            device = await lab.order()
            bond = device["network_ports"][0]["href"]
            await posted(lab, f"{bond}/assign", {"vnid": network}, 200)
            assert (await lab.client.get(gateway["href"])).json()["state"] == "active"
            assert (await lab.client.delete(gateway["href"])).status_code == 202
            assert (await lab.client.get(gateway["href"])).json()["state"] == "deleting"
            assert (await lab.client.delete(gateway["href"])).status_code == 202
            lab.elapse(1)
            assert (await lab.client.get(gateway["href"])).status_code == 404
            assert "private_ipv4" not in [entry.type for entry in lab.account.table(Reservation).values()]

    asyncio.run(run())


def test_a_public_block_serves_its_gateway_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            first, second = await vlan(lab), await vlan(lab)
            eight = await block(lab, 8)
            wanted = {"virtual_network_id": first, "ip_reservation_id": eight["id"]}
            gateway = await posted(lab, GATEWAYS, wanted)
            assert gateway["ip_reservation"]["id"] == eight["id"]
            refused = await posted(lab, GATEWAYS, {**wanted, "virtual_network_id": second}, 422)
            assert refused["errors"] == [f"IP reservation {eight['id']} is in use"]
            refused = await posted(lab, GATEWAYS, wanted, 422)
            assert refused["errors"] == [f"Virtual network {first} already has a metal gateway"]
            device = await lab.order()
            refused = await posted(lab, f"{device['href']}/ips", {"address": f"{eight['address']}/32"}, 422)
            assert "metal gateway" in refused["errors"][0]
            refused = (await lab.client.delete(eight["href"])).json()["errors"]
            assert "metal gateway" in refused[0]
            await lab.client.delete(gateway["href"])
            assert (await lab.client.get(eight["href"])).status_code == 200, "it was there before, and stays"
            assert (await lab.client.delete(eight["href"])).status_code == 204, "the provider does not wait"
            assert (await lab.client.get(gateway["href"])).status_code == 404

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({}, "One of ip reservation id and private ipv4 subnet size must be given"),
        ({"private_ipv4_subnet_size": 12}, "must be one of 8, 16, 32, 64, 128"),
        ({"ip_reservation_id": "small"}, "too small"),
        ({"ip_reservation_id": "elsewhere"}, "is in da, the virtual network in lb"),
        ({"ip_reservation_id": "used"}, "in use"),
        ({"ip_reservation_id": "33333333-3333-4333-8333-333333333333"}, "not in this project"),
        ({"virtual_network_id": "33333333-3333-4333-8333-333333333333", "private_ipv4_subnet_size": 8}, "not in"),
        ({"virtual_network_id": "facility", "private_ipv4_subnet_size": 8}, "a gateway needs one of a metro"),
    ],
)
def test_what_is_refused(tmp_path: Path, wanted: dict[str, Any], error: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order()
            blocks = {"small": await block(lab, 4), "elsewhere": await block(lab, 8, "da"), "used": await block(lab, 8)}
            await posted(lab, f"{device['href']}/ips", {"address": f"{blocks['used']['address']}/32"})
            names = {name: entry["id"] for name, entry in blocks.items()}
            names["facility"] = (await posted(lab, f"{PROJECT}/virtual-networks", {"facility": "lab1"}))["id"]
            body = {"virtual_network_id": await vlan(lab), **wanted}
            body = {key: names.get(str(value), value) for key, value in body.items()}
            (problem,) = (await posted(lab, GATEWAYS, body, 422))["errors"]
            assert error in problem
            assert (await lab.client.get(GATEWAYS)).json()["metal_gateways"] == []

    asyncio.run(run())


def test_a_project_with_networks_stays_but_does_not_wait(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            project = await posted(lab, "/metal/v1/projects", {"name": "other"})
            network = await posted(lab, f"{project['href']}/virtual-networks", {"metro": "lb"})
            wanted = {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8}
            gateway = await posted(lab, f"{project['href']}/metal-gateways", wanted)
            for thing, what in ((gateway, "metal gateways"), (network, "virtual networks")):
                refused = await lab.client.delete(project["href"])
                assert refused.status_code == 422
                assert what in refused.json()["errors"][0]
                assert (await lab.client.delete(thing["href"])).is_success
            assert (await lab.client.delete(project["href"])).status_code == 204

    asyncio.run(run())


def test_they_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            network = await vlan(lab)
            gateway = await posted(lab, GATEWAYS, {"virtual_network_id": network, "private_ipv4_subnet_size": 8})
            await lab.client.delete(gateway["href"])
        async with world(tmp_path) as lab:
            assert (await lab.client.get(gateway["href"])).json()["state"] == "deleting"
            lab.elapse(1)
            assert (await lab.client.get(GATEWAYS)).json()["metal_gateways"] == []

    asyncio.run(run())
