"""VLANs over HTTP: their numbers, their places, and what keeps them from being deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import PROJECT, World, world
from tests.lab.metal_api.judging import judged

NETWORKS = f"{PROJECT}/virtual-networks"
BASE = "/metal/v1"


async def created(lab: World, **body: Any) -> dict[str, Any]:
    """A VLAN; fails the test when it is refused."""
    answer = await lab.client.post(NETWORKS, json={"metro": "lb", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_life(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            network = await created(lab, description="storage", tags=["a"])
            assert (network["vxlan"], network["metro_code"], network["instances"]) == (1000, "lb", [])
            assert (network["description"], network["tags"]) == ("storage", ["a"])
            listed = (await lab.client.get(NETWORKS)).json()["virtual_networks"]
            assert [entry["id"] for entry in listed] == [network["id"]]
            assert (await lab.client.delete(network["href"])).status_code == 204
            assert (await lab.client.get(network["href"])).status_code == 404

    asyncio.run(run())


def test_numbers_are_the_projects_own_in_every_metro(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert [(await created(lab, vxlan=wanted))["vxlan"] for wanted in (1000, 3999, 2)] == [1000, 3999, 2]
            assert [(await created(lab))["vxlan"] for _ in range(2)] == [1001, 1002]
            assert (await created(lab, metro="da", vxlan=1000))["vxlan"] == 1000
            refused = await lab.client.post(NETWORKS, json={"metro": "LB", "vxlan": 1000})
            assert (refused.status_code, refused.json()) == (422, {"errors": ["Vxlan has already been taken"]})
            project = (await lab.client.post(f"{BASE}/projects", json={"name": "other"})).json()
            other = await lab.client.post(f"{project['href']}/virtual-networks", json={"metro": "lb", "vxlan": 1000})
            assert other.status_code == 201

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, ["Metro can't be blank"]),
        ({"metro": "xx"}, ["xx is not a valid metro"]),
        ({"facility": "xx1"}, ["xx1 is not a valid facility"]),
        ({"metro": "lb", "facility": "lab1"}, ["Cannot specify both metro and facility"]),
        ({"metro": "lb", "vxlan": 1}, ["Vxlan must be from 2 to 3999"]),
        ({"metro": "lb", "vxlan": "1000", "tags": 1}, ["Vxlan is not a number", "Tags must be a list of strings"]),
    ],
)
def test_what_is_refused(tmp_path: Path, body: dict[str, Any], errors: list[str]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post(NETWORKS, json=body)
            assert (answer.status_code, answer.json()) == (422, {"errors": errors})
            assert (await lab.client.get(NETWORKS)).json() == {"virtual_networks": []}

    asyncio.run(run())


def test_places_are_named_by_code_or_id(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            here = await created(lab)
            metro = here["metro"]["href"].rpartition("/")[2]
            there = (await lab.client.post(NETWORKS, json={"facility": "da11"})).json()
            assert there["facility_code"] == "da11" and "metro_code" not in there
            for query, found in (
                ({"metro": "lb"}, [here]),
                ({"metro": metro}, [here]),
                ({"facility": "da11"}, [there]),
                ({"metro": "ny"}, []),
            ):
                listed = (await lab.client.get(NETWORKS, params=query)).json()["virtual_networks"]
                assert listed == found, query
            assert (await created(lab, metro=metro))["metro_code"] == "lb"

    asyncio.run(run())


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            network, device = await created(lab), await lab.order()
            bond = device["network_ports"][0]["href"]
            assert (await lab.client.post(f"{bond}/assign", json={"vnid": network["id"]})).status_code == 200
            wanted = {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8}
            gateway = (await lab.client.post(f"{PROJECT}/metal-gateways", json=wanted)).json()
            shown = (await lab.client.get(network["href"])).json()
            assert [entry["href"] for entry in shown["instances"]] == [device["href"]]
            assert [entry["id"] for entry in shown["metal_gateways"]] == [gateway["id"]]
            errors = (await lab.client.delete(network["href"])).json()["errors"]
            assert [entry.rpartition(". ")[0].rpartition(" with ")[2] for entry in errors] == [
                "ports assigned",
                "a metal gateway",
            ]
            assert (await lab.client.post(f"{bond}/unassign", json={"vnid": network["id"]})).status_code == 200
            assert (await lab.client.delete(gateway["href"])).status_code == 202
            assert (await lab.client.delete(network["href"])).status_code == 204, "the provider does not wait"
            assert (await lab.client.get(gateway["href"])).json()["state"] == "deleting"

    asyncio.run(run())


def test_devices_that_are_being_deprovisioned_use_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            network, device = await created(lab), await lab.order()
            await lab.client.post(f"{device['network_ports'][0]['href']}/assign", json={"vnid": network["id"]})
            lab.clock.runs.clear()
            await lab.client.delete(device["href"])
            assert (await lab.client.get(network["href"])).json()["instances"] == []
            assert (await lab.client.delete(network["href"])).status_code == 204

    asyncio.run(run())


def test_they_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            network = await created(lab, description="storage")
        async with world(tmp_path) as lab:
            assert (await lab.client.get(network["href"])).json() == network
            assert (await created(lab))["vxlan"] == 1001

    asyncio.run(run())
