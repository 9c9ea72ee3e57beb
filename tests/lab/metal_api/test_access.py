"""API keys: what a token opens, and how often."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lab.metal_api.harness import IDENTITY, PROJECT, PUBLIC_KEY, World, world

API = "/metal/v1"
KEYS = f"projects/{IDENTITY.project_id}/api-keys"


async def made(lab: World, path: str, **body: Any) -> dict[str, Any]:
    """What a successful POST answers."""
    answer = await lab.client.post(f"{API}/{path}", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def asked(lab: World, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
    """A request with another token."""
    return await lab.client.request(method, path, headers={"X-Auth-Token": token}, json=body)


def test_a_projects_key_sees_its_project_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            other = (await made(lab, "projects", name="other"))["id"]
            key = await made(lab, f"projects/{other}/api-keys", description="d")
            assert (key["read_only"], key["project"]["id"], len(key["token"])) == (False, other, 32)
            mine = await made(lab, f"projects/{IDENTITY.project_id}/ssh-keys", label="k", key=PUBLIC_KEY)
            device = await lab.order()
            block = await made(lab, f"projects/{IDENTITY.project_id}/ips", type="public_ipv4", quantity=1, metro="lb")
            token = key["token"]
            listed = (await asked(lab, token, "GET", f"{API}/projects")).json()
            assert ([entry["id"] for entry in listed["projects"]], listed["meta"]["total"]) == ([other], 1)
            assert (await asked(lab, token, "GET", f"{API}/projects/{other}/devices")).json()["devices"] == []
            theirs = await asked(
                lab, token, "POST", f"{API}/projects/{other}/ssh-keys", {"label": "k", "key": PUBLIC_KEY}
            )
            assert theirs.status_code == 201
            shown = (
                await asked(lab, token, "GET", f"{API}/projects/{other}?include=organization.projects,ssh_keys")
            ).json()
            assert shown["organization"].keys() == {"href"}
            assert shown["ssh_keys"][0]["label"] == "k"
            own = device["ip_addresses"][0]
            for path in (
                PROJECT,
                f"{PROJECT}/devices",
                mine["href"],
                device["href"],
                f"{device['href']}/events",
                block["href"],
                own["href"],
                own["parent_block"]["href"],
            ):
                answer = await asked(lab, token, "GET", path)
                assert (answer.status_code, answer.json()) == (404, {"errors": ["Not found"]}), path
            assert (await asked(lab, token, "DELETE", device["href"])).status_code == 404
            for method, path in (("GET", "user"), ("GET", "organizations"), ("POST", "projects")):
                answer = await asked(lab, token, method, f"{API}/{path}", {"name": "n"})
                assert answer.status_code == 403, path
                assert answer.json()["errors"][0].startswith("You are not authorized to perform this action")
            assert (await asked(lab, token, "GET", "/lab/inventory")).status_code == 403
            assert (await asked(lab, token, "GET", f"{API}/plans")).status_code == 200

    asyncio.run(run())


def test_a_read_only_key_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            token = (await made(lab, KEYS, description="eyes", read_only=True))["token"]
            device = await lab.order()
            assert (await asked(lab, token, "GET", device["href"])).status_code == 200
            for method, path in (("POST", f"{PROJECT}/devices"), ("PUT", device["href"]), ("DELETE", device["href"])):
                assert (await asked(lab, token, method, path, {})).status_code == 403, method
            servers = [{"metro": "da", "plan": "c3.small.x86", "quantity": "1"}]
            check = await asked(lab, token, "POST", f"{API}/capacity/metros", {"servers": servers})
            assert check.json()["servers"][0]["available"] is True
            assert lab.devices[device["id"]].state == "queued"

    asyncio.run(run())


def test_a_deleted_key_opens_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            one, _ = [await made(lab, KEYS, description=text) for text in ("one", "two")]
            found = (await lab.client.get(f"{API}/{KEYS}?search=ONE")).json()["api_keys"]
            assert [entry["id"] for entry in found] == [one["id"]]
            assert (await asked(lab, one["token"], "GET", PROJECT)).status_code == 200
            assert (await lab.client.delete(f"{API}/api-keys/{one['id']}")).status_code == 204
            answer = await asked(lab, one["token"], "GET", PROJECT)
            assert (answer.status_code, answer.json()) == (401, {"error": "Invalid authentication token"})

    asyncio.run(run())


def test_requests_are_limited_when_the_lab_is_told_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            other = (await made(lab, KEYS))["token"]
            assert (await lab.client.put("/lab/rate-limit", json={"requests": 2, "seconds": 10})).status_code == 200
            lab.clock.time += timedelta(seconds=1)
            statuses = [(await lab.client.get(PROJECT)).status_code for _ in range(3)]
            assert statuses == [200, 200, 429]
            lab.clock.time += timedelta(seconds=2.5)
            refused = await lab.client.get(PROJECT)
            assert (refused.headers["Retry-After"], refused.json()) == ("8", {"errors": ["Too many requests"]})
            assert (await asked(lab, other, "GET", PROJECT)).status_code == 200
            assert (await lab.client.get("/lab/inventory")).status_code == 200
            lab.clock.time += timedelta(seconds=7.5)
            assert (await lab.client.get(PROJECT)).status_code == 200
        async with world(tmp_path) as lab:
            assert [(await lab.client.get(PROJECT)).status_code for _ in range(3)] == [200, 200, 429]
            assert (await lab.client.delete("/lab/rate-limit")).status_code == 204
            assert (await lab.client.get(PROJECT)).status_code == 200

    asyncio.run(run())


@pytest.mark.parametrize(
    "body", [{"requests": 0, "seconds": 1}, {"requests": 1}, {"requests": 1, "seconds": 1, "x": 1}]
)
def test_a_limit_that_makes_no_sense_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert (await lab.client.put("/lab/rate-limit", json=body)).status_code == 422
            assert (await lab.client.get("/lab/rate-limit")).json() == {"limits": []}

    asyncio.run(run())
