"""The token, and what it opens."""

from __future__ import annotations

import pytest

from tests.lab.metal_api.harness import API, IDENTITY, PROJECT, World


@pytest.mark.parametrize("path", [f"{API}/user", "/lab/inventory"])
async def test_a_bad_token_is_refused_in_the_real_words(lab: World, path: str) -> None:
    answer = await lab.client.get(path, headers={"X-Auth-Token": "another"})
    assert (answer.status_code, answer.json()) == (401, {"error": "Invalid authentication token"})


async def test_an_organization_shows_its_projects(lab: World) -> None:
    organization = f"{API}/organizations/{IDENTITY.organization_id}"
    made = await lab.post(f"{organization}/projects", {"name": "second"})
    shown = await lab.get(organization, include="projects")
    assert [project["name"] for project in shown["projects"]] == ["lab", "second"]
    assert [each["id"] for each in (await lab.get(f"{organization}/projects"))["projects"]][1] == made["id"]
    assert await lab.refused(f"{organization}/projects", {}) == ["Name can't be blank"]


async def test_no_project_has_keys(lab: World) -> None:
    assert await lab.get(f"{PROJECT}/api-keys") == {"api_keys": []}
    await lab.get(f"{API}/projects/{IDENTITY.organization_id}/api-keys", status=404)
