"""Orders and lists of devices beyond the simplest, and what is told of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.devices.models import Batch
from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, PUBLIC_KEY, World, world


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


def test_batches_are_ordered_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            path = f"{PROJECT}/devices/batch"
            plain: dict[str, Any] = {name: value for name, value in ORDER.items() if name != "hostname"}
            two = [{**plain, "quantity": 2, "hostnames": ["n"]}, {**plain, "hostnames": ["x", "y"]}, plain]
            made = (await lab.client.post(path, json={"batches": two})).json()["batches"]
            assert [batch["quantity"] for batch in made] == [2, 2, 1]
            assert (await names(lab, ""))[:4] == ["n-0", "n-1", "x", "y"]
            await lab.booted(made[0]["devices"][0]["href"].rpartition("/")[2])
            for wrong, message in (
                (
                    [{**plain, "quantity": 2, "hostnames": ["a", "b", "c"]}],
                    "Hostnames must be as many as quantity says",
                ),
                ([plain, {**plain, "plan": "huge"}], "huge is not a valid plan"),
                ([{**plain, "quantity": 1000}], "Quantity must be less than or equal to 100"),
                ([], "Batches can't be blank"),
            ):
                answer = await lab.client.post(path, json={"batches": wrong})
                assert (answer.status_code, answer.json()) == (422, {"errors": [message]})
            assert (len(lab.devices), len(lab.account.table(Batch))) == (5, 3)
            href = f"/metal/v1/batches/{made[1]['id']}"
            assert (await lab.client.delete(href)).status_code == 204
            assert (len(lab.devices), len(lab.account.table(Batch))) == (5, 2)
            href = f"/metal/v1/batches/{made[0]['id']}?remove_associated_instances=true"
            assert (await lab.client.delete(href)).status_code == 204
            await lab.until(lambda: len(lab.devices) == 3)

    asyncio.run(run())


def test_events_of_a_device_outlive_it_in_its_project(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order()
            await lab.booted(device["id"])
            own = (await lab.client.get(f"{device['href']}/events?per_page=2")).json()
            assert (own["events"][0]["type"], own["meta"]["last_page"]) == ("provisioning.110", 3)
            event = own["events"][0]
            assert (await lab.client.get(event["href"])).json() == event
            await lab.client.delete(device["href"])
            await lab.until(lambda: not lab.devices)
            left = (await lab.client.get(f"{PROJECT}/events")).json()
            assert (left["events"][0]["type"], left["meta"]["total"]) == ("instance.deprovisioning", 7)
            listed = (await lab.client.get("/metal/v1/events?include=relationships")).json()["events"][0]
            assert [entry.get("name") for entry in listed["relationships"]] == [None, "lab"]
            path = f"/metal/v1/organizations/{IDENTITY.organization_id}/events"
            assert (await lab.client.get(path)).json()["meta"]["total"] == 7

    asyncio.run(run())


def test_usages_count_hours_begun_at_the_price_of_the_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order(metro="sp")
            begun = device["created_at"]
            lab.clock.time += timedelta(hours=2, minutes=1)
            path = f"{device['href']}/usages"
            assert (await lab.client.get(path)).json() == {
                "usages": [{"quantity": "3", "unit": "hour", "total": "3.15"}]
            }
            before = begun.replace("T00", "T01")
            (usage,) = (await lab.client.get(f"{PROJECT}/usages", params={"created[before]": before})).json()["usages"]
            assert (usage["quantity"], usage["price"], usage["name"]) == ("1", "1.05", device["hostname"])
            wrong = await lab.client.get(path, params={"created[after]": "yesterday"})
            assert (wrong.status_code, wrong.json()) == (422, {"errors": ["After is not a valid time"]})

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
            assert (await lab.client.get(f"{device['href']}/customdata")).json() == shown

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


def test_keys_are_those_of_the_users_that_are_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            me = (await lab.client.get("/metal/v1/user")).json()["id"]
            key = {"label": "k", "key": PUBLIC_KEY}
            mine = (await lab.client.post("/metal/v1/ssh-keys", json=key)).json()
            await lab.client.post(f"{PROJECT}/ssh-keys", json=key)
            device = await lab.order(user_ssh_keys=[me])
            assert [entry["href"] for entry in device["ssh_keys"]] == [mine["href"]]
            assert len((await lab.order())["ssh_keys"]) == 2
            assert (await lab.order(no_ssh_keys=True))["ssh_keys"] == []
            answer = await lab.client.post(f"{PROJECT}/devices", json={**ORDER, "user_ssh_keys": [device["id"]]})
            assert answer.json() == {"errors": [f"user_ssh_keys: {device['id']} is not a user of this project"]}

    asyncio.run(run())
