"""Orders and lists of devices beyond the simplest, and what is told of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import PROJECT, PUBLIC_KEY, World, world


async def names(lab: World, query: str) -> list[str]:
    """The host names that a list has, the oldest first."""
    answer = await lab.client.get(f"{PROJECT}/devices?{query}")
    assert answer.status_code == 200, answer.text
    return [device["hostname"] for device in answer.json()["devices"]][::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c"]),
        ("facility=da6", ["b"]),
        ("metro=da", ["b"]),
        ("metro=zz", []),
        ("plan=c3.medium.x86", ["c"]),
        ("categories=storage", []),
        ("categories=compute,storage", ["a", "b", "c"]),
        ("tag=x,y", ["a"]),
        ("hostname=A", []),
        ("type=ondemand", ["a", "b", "c"]),
        ("type=spot", []),
        ("reserved=true", []),
        ("reserved=false&has_termination_time=false", ["a", "b", "c"]),
        ("has_termination_time=true", []),
        ("search=DALLAS", ["b"]),
        ("search=custom", ["a", "b", "c"]),
        ("search=198.51.100.5", ["c"]),
        ("search=the%20second", ["b"]),
    ],
)
def test_lists_are_filtered_as_described(tmp_path: Path, query: str, found: list[str]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            await lab.order(hostname="a", tags=["x", "y"])
            await lab.order(hostname="b", metro=None, facility=["da6"], tags=["x"], description="The second")
            await lab.order(hostname="c", plan="c3.medium.x86")
            assert await names(lab, query) == found

    asyncio.run(run())


def test_references_are_expanded_three_levels_deep_and_in_lists(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            key = (await lab.client.post(f"{PROJECT}/ssh-keys", json={"label": "k", "key": PUBLIC_KEY})).json()
            await lab.order()
            query = "include=project.organization.projects.devices,ssh_keys&exclude=plan,facility.metro"
            (device,) = (await lab.client.get(f"{PROJECT}/devices?{query}")).json()["devices"]
            assert device["plan"].keys() == device["facility"]["metro"].keys() == {"href"}
            assert device["facility"]["code"] == "lab1"
            assert device["ssh_keys"] == [key]
            project = device["project"]["organization"]["projects"][0]
            assert project["name"] == "lab"
            assert project["devices"] == [{"href": device["href"]}], "the fourth level stays a link"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "shown"), [({"a": [1]}, {"a": [1]}), ('{"a": [1]}', {"a": [1]}), ("", {}), (None, {"old": 1})]
)
def test_customdata_is_taken_as_packngo_writes_it(tmp_path: Path, given: Any, shown: Any) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order(customdata={"old": 1})
            answer = await lab.client.put(device["href"], json={"customdata": given})
            assert answer.json()["customdata"] == shown
            assert (await lab.client.get(device["href"])).json()["customdata"] == shown

    asyncio.run(run())


def test_a_device_that_is_being_released_is_not_changed(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            lab.clock.runs.clear()
            device = await lab.order()
            await lab.client.delete(device["href"])
            answer = await lab.client.put(device["href"], json={"hostname": "h"})
            assert (answer.status_code, answer.json()) == (422, {"errors": ["Device is being deprovisioned"]})
            assert (await lab.client.delete(device["href"])).status_code == 204

    asyncio.run(run())
