"""What an order of a device asks for besides the machine: an end, and networks of a size."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import ORDER, PROJECT, world
from tests.lab.metal_api.judging import judged


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00+03:00", "2026-01-01T09:00:00Z"),
        ("2026-01-01T12:00:00", "2026-01-01T12:00:00Z"),
    ],
)
def test_a_device_ends_at_its_time(tmp_path: Path, given: str, time: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            device = await lab.order(termination_time=given, locked=True)
            assert device["termination_time"] == time
            other = await lab.order()
            lab.elapse(8.9 * 3600)
            assert (await lab.device(device["id"]))["state"] != "deprovisioning"
            lab.elapse(4 * 3600)
            assert (await lab.device(device["id"]))["state"] == "deprovisioning"
            await lab.until(lambda: device["id"] not in lab.devices)
            assert other["id"] in lab.devices

    asyncio.run(run())


def test_the_time_comes_after_a_restart_as_well(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order(termination_time="2026-01-01T12:00:00Z")
        async with world(tmp_path) as lab:
            lab.elapse(13 * 3600)
            await lab.client.get(f"{PROJECT}/devices")
            await lab.until(lambda: device["id"] not in lab.devices)

    asyncio.run(run())


def test_networks_of_a_size(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            await lab.order()
            wanted = [{"address_family": 4, "public": True, "cidr": 29}, {"address_family": 4, "public": False}]
            large = await lab.order(ip_addresses=wanted)
            public, private = large["ip_addresses"]
            assert (public["address"], public["gateway"], public["cidr"]) == ("198.51.100.10", "198.51.100.9", 29)
            assert (public["network"], public["netmask"]) == ("198.51.100.8", "255.255.255.248")
            assert private["cidr"] == 31
            old = await lab.order(public_ipv4_subnet_size=30, private_ipv4_subnet_size=28)
            assert [address["cidr"] for address in old["ip_addresses"]] == [30, 28]
            await lab.order()
            every = [address for device in lab.devices.values() for address in device.addresses]
            networks = [ipaddress.IPv4Network(f"{each.address}/{each.prefix}", strict=False) for each in every]
            assert not any(one.overlaps(other) for one in networks for other in networks if one is not other)
            blocks = (await lab.client.get(f"{PROJECT}/ips", params={"types": "public_ipv4"})).json()["ip_addresses"]
            assert sorted(block["cidr"] for block in blocks) == [29, 30, 31, 31]
            spec = lab.machines
            await lab.until(lambda: large["id"] in spec.specs)
            assert spec.specs[large["id"]].addresses[0].prefix == 29

    asyncio.run(run())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"termination_time": "soon"}, "Termination time is not a valid time"),
        ({"termination_time": "2020-01-01T00:00:00Z"}, "Termination time must be in the future"),
        ({"public_ipv4_subnet_size": 27}, "Public ipv4 subnet size must be from 28 to 31"),
        (
            {"ip_addresses": [{"address_family": 4}, {"address_family": 4, "public": False, "cidr": 32}]},
            "Private ipv4 subnet size must be from 28 to 31",
        ),
        ({"ip_addresses": [{"address_family": 4, "public": True}]}, "Private IPv4 address is required"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], error: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post(f"{PROJECT}/devices", json={**ORDER, **changes})
            assert answer.status_code == 422, answer.text
            assert error in answer.json()["errors"][0]

    asyncio.run(run())
