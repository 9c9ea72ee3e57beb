"""Tokens: who gets in, and what a project's key opens."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.lab.metal_api.harness import API, IDENTITY, PROJECT, PUBLIC_KEY, World

KEYS = f"{PROJECT}/api-keys"


async def asked(lab: World, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
    """A request with another token."""
    return await lab.client.request(method, path, headers={"X-Auth-Token": token}, json=body)


@pytest.mark.parametrize("path", [f"{API}/user", "/lab/inventory"])
async def test_a_bad_token_is_refused_in_the_real_words(lab: World, path: str) -> None:
    answer = await asked(lab, "another", "GET", path)
    assert (answer.status_code, answer.json()) == (401, {"error": "Invalid authentication token"})


async def test_a_projects_key_sees_its_project_only(lab: World) -> None:
    other = (await lab.post(f"{API}/projects", {"name": "other"}))["id"]
    key = await lab.post(f"{API}/projects/{other}/api-keys", {"description": "d"})
    assert (key["read_only"], key["project"]["id"], len(key["token"])) == (False, other, 32)
    token = key["token"]
    mine = await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
    device = await lab.order()
    block = await lab.post(f"{PROJECT}/ips", {"type": "public_ipv4", "quantity": 1, "metro": "lb"})
    listed = (await asked(lab, token, "GET", f"{API}/projects")).json()
    assert ([entry["id"] for entry in listed["projects"]], listed["meta"]["total"]) == ([other], 1)
    assert (await asked(lab, token, "GET", f"{API}/projects/{other}/devices")).json()["devices"] == []
    theirs = {"label": "k", "key": PUBLIC_KEY}
    assert (await asked(lab, token, "POST", f"{API}/projects/{other}/ssh-keys", theirs)).status_code == 201
    query = "include=organization.projects,ssh_keys"
    shown = (await asked(lab, token, "GET", f"{API}/projects/{other}?{query}")).json()
    assert shown["organization"].keys() == {"href"}
    assert shown["ssh_keys"][0]["label"] == "k"
    address, bond = device["ip_addresses"][0], device["network_ports"][0]
    for path in (
        *(PROJECT, f"{PROJECT}/devices", mine["href"], device["href"], f"{device['href']}/events", block["href"]),
        *(address["href"], address["parent_block"]["href"], bond["href"]),
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


async def test_a_read_only_key_changes_nothing(lab: World) -> None:
    token = (await lab.post(KEYS, {"description": "eyes", "read_only": True}))["token"]
    device = await lab.order()
    assert (await asked(lab, token, "GET", device["href"])).status_code == 200
    for method, path in (("POST", f"{PROJECT}/devices"), ("PUT", device["href"]), ("DELETE", device["href"])):
        assert (await asked(lab, token, method, path, {})).status_code == 403, method
    servers = [{"metro": "da", "plan": "c3.small.x86", "quantity": "1"}]
    check = await asked(lab, token, "POST", f"{API}/capacity/metros", {"servers": servers})
    assert check.json()["servers"][0]["available"] is True
    assert lab.devices[device["id"]].state == "queued"


async def test_a_deleted_key_opens_nothing(lab: World) -> None:
    one, two = [await lab.post(KEYS, {"description": text}) for text in ("one", "two")]
    assert (await asked(lab, one["token"], "GET", PROJECT)).status_code == 200
    await lab.delete(f"{API}/api-keys/{one['id']}")
    assert (await asked(lab, one["token"], "GET", PROJECT)).status_code == 401
    assert [key["id"] for key in (await lab.get(KEYS))["api_keys"]] == [two["id"]]


async def test_an_organization_shows_its_projects(lab: World) -> None:
    organization = f"{API}/organizations/{IDENTITY.organization_id}"
    made = await lab.post(f"{organization}/projects", {"name": "second"})
    shown = await lab.get(organization, include="projects")
    assert [project["name"] for project in shown["projects"]] == ["lab", "second"]
    assert [each["id"] for each in (await lab.get(f"{organization}/projects"))["projects"]][1] == made["id"]
    assert await lab.refused(f"{organization}/projects", {}) == ["Name can't be blank"]
