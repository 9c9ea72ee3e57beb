"""Routes, shapes and errors of the API, as its clients lean on them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, PUBLIC_KEY, world


def test_a_bad_token_is_refused_in_the_real_words(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path, token="another") as lab:
            answer = await lab.client.get("/metal/v1/user")
            assert (answer.status_code, answer.json()) == (401, {"error": "Invalid authentication token"})
            assert (await lab.client.get("/lab/inventory")).status_code == 401

    asyncio.run(run())


def test_a_missing_device_is_what_the_terraform_provider_takes_as_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.get("/metal/v1/devices/33333333-3333-4333-8333-333333333333")
            assert (answer.status_code, answer.json()) == (404, {"errors": ["Not found"]})
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-request-id"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/metal/v1/vrfs/x"), ("POST", "/metal/v1/user"), ("GET", "/elsewhere")]
)
def test_what_is_not_implemented_says_so_and_is_counted(tmp_path: Path, method: str, path: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.request(method, path)
            assert answer.status_code == 501
            assert answer.json() == {"errors": [f"not implemented in the lab: {method} {path}"]}
            seen = (await lab.client.get("/lab/requests")).json()
            assert seen["counts"][f"{method} {path}"] == 1
            assert seen["statuses"][f"{method} {path} 501"] == 1

    asyncio.run(run())


def test_a_device_has_what_the_official_clients_dereference(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            key = (await lab.client.post(f"{PROJECT}/ssh-keys", json={"label": "k", "key": PUBLIC_KEY})).json()
            device = await lab.order(tags=["metal-ipi"], userdata="{}")
            assert device["state"] == "queued"
            assert device["plan"]["slug"] == "c3.small.x86"
            assert device["operating_system"]["slug"] == "custom_ipxe"
            assert (device["facility"]["code"], device["metro"]["code"]) == ("lab1", "lb")
            assert device["project"] == {"href": PROJECT}
            assert device["ssh_keys"] == [{"href": key["href"]}]
            public, private = device["ip_addresses"]
            assert (public["address"], public["gateway"], public["cidr"]) == ("198.51.100.1", "198.51.100.0", 31)
            assert (private["address"], private["public"], private["management"]) == ("203.0.113.1", False, True)
            assert [port["name"] for port in device["network_ports"]] == ["bond0", "eth0", "eth1"]
            assert device["sos"] == f"{device['id']}@sos.lab1.platformequinix.com"
            assert len(device["root_password"]) == 10

    asyncio.run(run())


def test_references_are_included_and_excluded(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order()
            query = "include=project,facility&exclude=plan"
            shown = (await lab.client.get(f"/metal/v1/devices/{device['id']}?{query}")).json()
            assert shown["project"]["id"] == IDENTITY.project_id
            assert shown["project"]["organization"]["href"].endswith(IDENTITY.organization_id)
            assert shown["plan"] == {"href": device["plan"]["href"]}
            assert shown["facility"]["code"] == "lab1"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": "huge"}, "huge is not a valid plan"),
        ({"plan": None}, "Plan can't be blank"),
        ({"metro": "zz"}, "zz is not a valid metro"),
        ({"metro": None}, "Facility can't be blank"),
        ({"metro": None, "facility": ["nowhere"]}, "Facility can't be blank"),
        ({"operating_system": "beos"}, "beos is not a valid operating_system"),
        ({"hostname": "no spaces"}, "Hostname is invalid"),
        ({"userdata": "x" * 70000}, "Userdata is too long (maximum is 65535 bytes)"),
        ({"ip_addresses": [{"address_family": 4, "public": True}]}, "Private IPv4 address is required"),
        ({"tags": "one"}, "Tags must be a list of strings"),
        ({"project_ssh_keys": ["nope"]}, "project_ssh_keys: nope is not a key of this project"),
    ],
)
def test_a_wrong_order_is_unprocessable(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post(f"{PROJECT}/devices", json={**ORDER, **change})
            assert (answer.status_code, answer.json()) == (422, {"errors": [message]})
            assert not lab.devices

    asyncio.run(run())


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        ("{", 400, "Invalid JSON in the request body"),
        (b"\xff", 400, "Invalid JSON in the request body"),
        ('{"name": "\\ud800"}', 400, "Invalid JSON in the request body"),
        ('{"name": NaN}', 400, "Invalid JSON in the request body"),
        pytest.param("[" * 100_000, 400, "Invalid JSON in the request body", id="deep"),
        ("[]", 422, "The request body must be a JSON object"),
        ('"name"', 422, "The request body must be a JSON object"),
        ("", 422, "Name can't be blank"),
        ('{"name": 1e999}', 400, "Invalid JSON in the request body"),
        ('{"name": 1.5}', 422, "Name must be a string"),
        ('{"name": "n", "customdata": "{\\"a\\": NaN}"}', 422, "Customdata must be a JSON object"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: str | bytes, status: int, message: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post("/metal/v1/projects", content=content)
            assert (answer.status_code, answer.json()) == (status, {"errors": [message]})

    asyncio.run(run())


@pytest.mark.parametrize("number", ["true", '"1"', "1.5"])
def test_a_number_is_one_and_whole_where_it_counts(tmp_path: Path, number: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            content = f'{{"metro": "da", "servers": {number}}}'
            answer = await lab.client.put("/lab/capacity", content=content)
            assert answer.status_code == 422
            assert answer.json()["errors"][0].startswith("Servers ")

    asyncio.run(run())


def test_custom_ipxe_needs_a_script_and_all_problems_come_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            body = {**ORDER, "plan": "huge", "ipxe_script_url": None}
            errors = (await lab.client.post(f"{PROJECT}/devices", json=body)).json()["errors"]
            assert len(errors) == 2
            assert "ipxe_script_url" in errors[1]
            body = {**ORDER, "ipxe_script_url": None, "userdata": "#!ipxe\nboot"}
            assert (await lab.client.post(f"{PROJECT}/devices", json=body)).status_code == 201

    asyncio.run(run())


@pytest.mark.parametrize(
    "change",
    [
        {"operating_system": "debian_12"},
        {"features": ["tpm"]},
        {"ip_addresses": [{"address_family": 6, "public": True}]},
        {"ip_addresses": [{"address_family": 4, "public": False}]},
    ],
)
def test_what_the_lab_cannot_make_is_refused_not_ignored(tmp_path: Path, change: dict[str, Any]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert (await lab.client.post(f"{PROJECT}/devices", json={**ORDER, **change})).status_code == 501

    asyncio.run(run())


def test_lists_are_paged_filtered_and_searched(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            for number in range(5):
                await lab.order(hostname=f"node-{number}", tags=["odd" if number % 2 else "even", "all"])
            path = f"{PROJECT}/devices"
            page = (await lab.client.get(f"{path}?per_page=2&page=2")).json()
            assert [device["hostname"] for device in page["devices"]] == ["node-2", "node-1"]
            meta = page["meta"]
            assert (meta["total"], meta["current_page"], meta["last_page"]) == (5, 2, 3)
            # packngo puts its base address, which ends in /metal/v1, before this.
            assert meta["next"]["href"] == f"/projects/{IDENTITY.project_id}/devices?per_page=2&page=3"
            last = (await lab.client.get(f"{path}?per_page=2&page=3")).json()
            assert last["meta"]["next"] is None
            odd = (await lab.client.get(f"{path}?tag=odd&tag=all")).json()["devices"]
            assert [device["hostname"] for device in odd] == ["node-3", "node-1"]
            found = (await lab.client.get(f"{path}?search=node-4")).json()["devices"]
            assert [device["hostname"] for device in found] == ["node-4"]
            found = (await lab.client.get(f"{path}?hostname=node-0")).json()["devices"]
            assert [device["hostname"] for device in found] == ["node-0"]

    asyncio.run(run())


def test_projects_and_keys_live_and_go(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            created = await lab.client.post("/metal/v1/projects", json={"name": "cluster"})
            assert created.status_code == 201
            path = created.json()["href"]
            renamed = await lab.client.patch(path, json={"name": "renamed"})
            assert renamed.json()["name"] == "renamed"
            assert (await lab.client.get(f"{path}/bgp-config")).json() == {}
            key = {"label": "k", "key": PUBLIC_KEY}
            made = await lab.client.post(f"{path}/ssh-keys", json=key)
            assert made.json()["owner"] == {"href": path}
            assert made.json()["fingerprint"].count(":") == 15
            again = await lab.client.post(f"{path}/ssh-keys", json=key)
            assert (again.status_code, again.json()) == (422, {"errors": ["Key has already been taken"]})
            bad = await lab.client.post(f"{path}/ssh-keys", json={"label": "k", "key": "ssh-rsa nonsense"})
            assert bad.json() == {"errors": ["Key is invalid"]}
            await lab.client.post(f"{path}/devices", json=ORDER)
            assert (await lab.client.delete(path)).status_code == 422
            for device in list(lab.devices):
                await lab.client.delete(f"/metal/v1/devices/{device}")
            await lab.until(lambda: not lab.devices)
            assert (await lab.client.delete(path)).status_code == 204
            assert (await lab.client.get(path)).status_code == 404
            assert (await lab.client.get(made.json()["href"])).status_code == 404

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "key", "codes"),
    [
        ("facilities", "facilities", {"lab1", "da11", "sv15", "ny5"}),
        ("locations/metros", "metros", {"lb", "da", "sv", "ny"}),
        ("plans", "plans", {"c3.small.x86", "m3.small.x86"}),
        ("operating-systems", "operating_systems", {"custom_ipxe"}),
    ],
)
def test_the_catalogue(tmp_path: Path, path: str, key: str, codes: set[str]) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            entries = (await lab.client.get(f"/metal/v1/{path}")).json()[key]
            assert codes <= {entry.get("code") or entry.get("slug") for entry in entries}

    asyncio.run(run())
