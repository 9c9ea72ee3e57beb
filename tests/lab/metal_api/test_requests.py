"""What all operations have in common: routes, bodies, lists, references."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.operations import OPERATIONS
from tests.lab.metal_api.harness import API, IDENTITY, PROJECT, PUBLIC_KEY, World


async def test_the_document_lists_what_is_implemented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "emulated-api.md").read_text()
    listed = {
        path: set(methods.split()) for path, methods in re.findall(r"^\| `(/\S+)` \| (.+) \|$", text, re.MULTILINE)
    }
    assert listed == {path: methods.keys() for path, methods in OPERATIONS.items() if not path.startswith("/lab/")}


async def test_a_missing_device_is_what_the_terraform_provider_takes_as_gone(lab: World) -> None:
    answer = await lab.client.get(f"{API}/devices/33333333-3333-4333-8333-333333333333")
    assert (answer.status_code, answer.json()) == (404, {"errors": ["Not found"]})
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", f"{API}/vrfs/x"), ("POST", f"{API}/plans"), ("PUT", "/lab/faults"), ("GET", "/else")]
)
async def test_what_is_not_implemented_says_so_and_is_counted(lab: World, method: str, path: str) -> None:
    answer = await lab.call(method, path, status=501)
    assert answer == {"errors": [f"not implemented in the lab: {method} {path}"]}
    seen = await lab.get("/lab/requests")
    assert seen["counts"][f"{method} {path}"] == seen["statuses"][f"{method} {path} 501"] == 1
    assert seen["seconds"]["p95"] >= seen["seconds"]["median"] > 0


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        ("{", 400, "Invalid JSON in the request body"),
        (b"\xff", 400, "Invalid JSON in the request body"),
        ('{"name": "\\ud800"}', 400, "Invalid JSON in the request body"),
        ('{"name": NaN}', 400, "Invalid JSON in the request body"),
        pytest.param("[" * 100_000, 400, "Invalid JSON in the request body", id="deep"),
        ('{"name": 1e999}', 400, "Invalid JSON in the request body"),
        ("[]", 422, "The request body must be a JSON object"),
        ("", 422, "Name can't be blank"),
        ('{"name": " "}', 422, "Name can't be blank"),
        ('{"name": 1.5}', 422, "Name must be a string"),
        ('{"name": "n", "tags": ["a", 1]}', 422, "Tags.1 must be a string"),
        ('{"name": "n", "customdata": "{\\"a\\": NaN}"}', 422, "Customdata must be a JSON object"),
        (f'{{"name": "{"n" * 81}"}}', 422, "Name is too long (maximum is 80 characters)"),
        ('{"name": "😀"}', 422, "Name cannot contain characters of more than 3 bytes"),
    ],
)
async def test_a_body_that_is_wrong_is_refused(lab: World, content: str | bytes, status: int, message: str) -> None:
    answer = await lab.client.post(f"{API}/projects", content=content)
    assert (answer.status_code, answer.json()) == (status, {"errors": [message]})


async def test_lists_are_paged_and_searched(lab: World) -> None:
    for number in range(5):
        await lab.order(hostname=f"node-{number}", tags=["odd" if number % 2 else "even", "all"])

    async def names(**query: Any) -> list[str]:
        return [device["hostname"] for device in (await lab.get(f"{PROJECT}/devices", **query))["devices"]]

    assert await names(per_page="2", page="2") == ["node-2", "node-1"]
    meta = (await lab.get(f"{PROJECT}/devices", per_page="2", page="2"))["meta"]
    assert (meta["total"], meta["current_page"], meta["last_page"]) == (5, 2, 3)
    # packngo puts its base address, which ends in /metal/v1, before this.
    assert meta["next"]["href"] == f"/projects/{IDENTITY.project_id}/devices?per_page=2&page=3"
    assert (await lab.get(f"{PROJECT}/devices", per_page="2", page="3"))["meta"]["next"] is None
    assert await names(tag="odd,all") == ["node-3", "node-1"]
    refused = await lab.call("GET", f"{PROJECT}/devices?state=active", status=501)
    assert refused["errors"] == [f"not implemented in the lab: {PROJECT}/devices by state"]


async def test_references_are_expanded_three_levels_deep(lab: World) -> None:
    key = await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
    await lab.order()
    include = "project.organization.projects.devices,ssh_keys,hardware_reservation"
    (device,) = (await lab.get(f"{PROJECT}/devices", include=include))["devices"]
    assert device["facility"]["code"] == "lab1"
    assert device["ssh_keys"] == [key]
    project = device["project"]["organization"]["projects"][0]
    assert project["name"] == "lab"
    assert project["devices"] == [{"href": device["href"]}], "the fourth level stays a link"


async def test_projects_and_keys_live_and_go(lab: World) -> None:
    path = (await lab.post(f"{API}/projects", {"name": "cluster"}))["href"]
    changes = {"name": "renamed", "backend_transfer_enabled": True}
    renamed = await lab.call("PATCH", path, json=changes, status=200)
    assert (renamed["name"], renamed["backend_transfer_enabled"]) == ("renamed", True)
    assert [each["href"] for each in (await lab.get(f"{API}/projects"))["projects"]] == [PROJECT, path]
    key = {"label": "k", "key": PUBLIC_KEY}
    made = await lab.post(f"{path}/ssh-keys", key)
    assert (made["owner"], made["fingerprint"].count(":")) == ({"href": path}, 15)
    assert await lab.refused(f"{path}/ssh-keys", key) == ["Key has already been taken"]
    assert await lab.refused(f"{path}/ssh-keys", {"label": "k", "key": "ssh-rsa nonsense"}) == ["Key is invalid"]
    assert await lab.refused(f"{path}/ssh-keys", {}) == ["Label can't be blank", "Key can't be blank"]
    changed = await lab.call("PATCH", made["href"], json={"label": "other"}, status=200)
    assert (changed["label"], changed["key"]) == ("other", PUBLIC_KEY)
    assert [each["label"] for each in (await lab.get(f"{path}/ssh-keys"))["ssh_keys"]] == ["other"]
    await lab.delete(path)
    for gone in (path, made["href"]):
        await lab.get(gone, status=404)


@pytest.mark.parametrize(
    ("kind", "body", "what"),
    [
        ("devices", None, "active devices"),
        ("ips", {"type": "public_ipv4", "quantity": 4, "metro": "lb"}, "IP reservations"),
        ("virtual-networks", {"metro": "lb"}, "virtual networks"),
        ("metal-gateways", {"private_ipv4_subnet_size": 8}, "metal gateways"),
        ("spot-market-requests", None, "spot market requests"),
    ],
)
async def test_a_project_stays_as_long_as_it_is_used(
    lab: World, kind: str, body: dict[str, object] | None, what: str
) -> None:
    from tests.lab.metal_api.harness import ORDER
    from tests.lab.metal_api.test_spot_market import BID

    project = (await lab.post(f"{API}/projects", {"name": "other"}))["href"]
    network: list[str] = []
    if kind == "metal-gateways":
        made = await lab.post(f"{project}/virtual-networks", {"metro": "lb"})
        network, body = [made["href"]], {"virtual_network_id": made["id"], **(body or {})}
    orders = {"devices": ORDER, "spot-market-requests": {**BID, "max_bid_price": 0.01}}
    made = await lab.post(f"{project}/{kind}", body or orders[kind])
    assert what in (await lab.delete(project, status=422))["errors"][0]
    assert (await lab.client.delete(made["href"])).is_success
    await lab.until(lambda: not lab.devices)
    for each in network:
        await lab.delete(each)
    await lab.delete(project)


async def test_the_catalogue(lab: World) -> None:
    listed = (await lab.get(f"{API}/plans", include="available_in_metros"))["plans"]
    plans = {plan["slug"]: plan for plan in listed}
    small = plans["c3.small.x86"]
    assert (small["pricing"], small["deployment_types"]) == ({"hour": 0.75}, ["on_demand", "spot_market"])
    by_metro = {entry["code"]: entry.get("price") for entry in small["available_in_metros"]}
    assert (by_metro["sp"], by_metro["da"]) == ({"hour": 1.05}, None)
    assert len(plans["c3.large.arm64"]["available_in_metros"]) == 5
    assert plans["n3.xlarge.opt-m4s2"]["deployment_types"] == []
    systems = (await lab.get(f"{API}/operating-systems"))["operating_systems"]
    fits = {entry["slug"]: "c3.large.arm64" in entry["provisionable_on"] for entry in systems}
    assert (fits["custom_ipxe"], fits["windows_2022"]) == (True, False)
