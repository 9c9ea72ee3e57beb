"""Elastic addresses and BGP: what the API refuses, what it tells the router and the machine, what survives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.bgp.models import BgpConfig, BgpSession
from lab.metal_api.ips.models import Reservation
from lab.network.bgp import Peer, Routes, Seen, Static
from tests.lab.metal_api.harness import IDENTITY, PROJECT, World, world

BGP: dict[str, Any] = {"deployment_type": "local", "asn": 65000, "md5": "Secret1234"}
BLOCK: dict[str, Any] = {"type": "public_ipv4", "quantity": 4, "metro": "lb"}


async def made(lab: World, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a POST made; fails the test when it is refused."""
    answer = await lab.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def refused(lab: World, path: str, body: Any, status: int = 422) -> list[str]:
    """The reasons why a POST is refused."""
    answer = await lab.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["errors"]


async def enabled(lab: World, **changes: Any) -> str:
    """The path of a device in a project with BGP."""
    assert (await lab.client.post(f"{PROJECT}/bgp-configs", json={**BGP, **changes})).status_code == 204
    return f"/metal/v1/devices/{(await lab.order())['id']}"


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"type": "gold"}, 422, "Type is not included in the list"),
        ({"type": "global_ipv4"}, 501, "not implemented in the lab: reservations of type global_ipv4"),
        ({"quantity": 3}, 422, "Quantity must be a power of 2"),
        ({"quantity": True}, 422, "Quantity must be a power of 2"),
        ({"quantity": 128}, 422, "There are not 128 addresses in a row available in this facility"),
        ({"metro": None}, 422, "Metro can't be blank"),
        ({"metro": "xx"}, 422, "xx is not a valid metro"),
        ({"metro": None, "facility": "nowhere"}, 422, "nowhere is not a valid facility"),
        ({"facility": "lab1"}, 422, "Cannot specify both metro and facility"),
        ({"tags": "a"}, 422, "Tags must be a list of strings"),
        ({"details": 1}, 422, "Details must be a string"),
        ({"customdata": "no json"}, 422, "Customdata must be a JSON object"),
    ],
)
def test_wrong_reservations_are_refused(tmp_path: Path, change: dict[str, Any], status: int, message: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert await refused(lab, f"{PROJECT}/ips", {**BLOCK, **change}, status) == [message]
            assert not lab.account.table(Reservation)

    asyncio.run(run())


def test_blocks_do_not_overlap_and_are_used_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            one = await made(lab, f"{PROJECT}/ips", {**BLOCK, "quantity": 1})
            four = await made(lab, f"{PROJECT}/ips", {**BLOCK, "metro": "LB", "details": "pool"})
            in_facility = await made(lab, f"{PROJECT}/ips", {"type": "public_ipv4", "quantity": 2, "facility": "lab1"})
            assert [(block["network"], block["cidr"]) for block in (one, four, in_facility)] == [
                ("192.0.2.128", 32),
                ("192.0.2.132", 30),
                ("192.0.2.130", 31),
            ]
            assert (four["facility"], in_facility["facility"]["code"], four["details"]) == (None, "lab1", "pool")
            assert (four["management"], four["manageable"], four["public"]) == (False, True, True)
            await made(lab, f"{PROJECT}/ips", {**BLOCK, "quantity": 32})
            assert "available" in (await refused(lab, f"{PROJECT}/ips", {**BLOCK, "quantity": 32}))[0]
            assert (await lab.client.delete(one["href"])).status_code == 204
            assert (await lab.client.delete(one["href"])).status_code == 404
            again = await made(lab, f"{PROJECT}/ips", {**BLOCK, "quantity": 1})
            assert again["network"] == "192.0.2.128"
            assert again["id"] != one["id"]

    asyncio.run(run())


def test_a_projects_list_has_both_kinds_and_pages(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            await lab.order()
            block = await made(lab, f"{PROJECT}/ips", BLOCK)
            listed = (await lab.client.get(f"{PROJECT}/ips")).json()
            assert [entry["address"] for entry in listed["ip_addresses"]] == [
                "198.51.100.0",
                "203.0.113.0",
                "192.0.2.128",
            ]
            private = (await lab.client.get(f"{PROJECT}/ips?types=private_ipv4,global_ipv4")).json()
            assert [entry["address"] for entry in private["ip_addresses"]] == ["203.0.113.0"]
            page = (await lab.client.get(f"{PROJECT}/ips?per_page=2&page=2")).json()
            assert [entry["id"] for entry in page["ip_addresses"]] == [block["id"]]
            assert (page["meta"]["total"], page["meta"]["next"]) == (3, None)
            for entry in listed["ip_addresses"]:
                assert (await lab.client.get(entry["href"])).json()["id"] == entry["id"]
            own = listed["ip_addresses"][0]["href"]
            assert (await lab.client.delete(own)).status_code == 422
            assert (await lab.client.patch(own, json={})).status_code == 422

    asyncio.run(run())


def test_assigned_addresses_are_the_devices_until_taken_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await lab.order()
            path = f"/metal/v1/devices/{device['id']}"
            block = await made(lab, f"{PROJECT}/ips", BLOCK)
            entry = await made(lab, f"{path}/ips", {"address": "192.0.2.129", "customdata": {"a": 1}})
            assert (entry["address"], entry["cidr"], entry["customdata"]) == ("192.0.2.129", 32, {"a": 1})
            assert entry["parent_block"]["href"] == block["href"]
            assert lab.router.told[-1].static == (Static(prefix="192.0.2.129/32", via="198.51.100.1"),)
            for address, reason in (
                ("192.0.2.128/30", "192.0.2.128/30 is already assigned"),
                ("192.0.2.140/32", "192.0.2.140/32 is not in an IP reservation of this project"),
                ("x", "Address is invalid: Expected 4 octets in 'x'"),
            ):
                assert await refused(lab, f"{path}/ips", {"address": address}) == [reason]
            elsewhere = await lab.order(metro="da")
            other = f"/metal/v1/devices/{elsewhere['id']}/ips"
            assert "not in da" in (await refused(lab, other, {"address": "192.0.2.130"}))[0]
            assert [each["address"] for each in (await lab.device(device["id"]))["ip_addresses"]] == [
                "198.51.100.1",
                "203.0.113.1",
                "192.0.2.129",
            ]
            async with lab.machine("198.51.100.1") as machine:
                told = (await machine.get("/metadata")).json()["network"]["addresses"][-1]
            assert (told["address"], told["management"]) == ("192.0.2.129", False)
            assert "assigned addresses" in (await lab.client.delete(block["href"])).json()["errors"][0]
            shown = (await lab.client.get(f"{block['href']}?include=assignments,project")).json()
            assert [each["id"] for each in shown["assignments"]] == [entry["id"]]
            assert shown["project"]["name"] == "lab"
            assert (await lab.client.delete(entry["href"])).status_code == 204
            assert lab.router.told[-1] == Routes()
            assert (await lab.client.delete(block["href"])).status_code == 204

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"deployment_type": "global"}, 501, "not implemented in the lab: global BGP deployments"),
        ({"deployment_type": "x"}, 422, "Deployment type is not included in the list"),
        ({"asn": 65001}, 422, "Asn must be 65000 in a local deployment"),
        ({"asn": None}, 422, "Asn must be 65000 in a local deployment"),
        (
            {"md5": "short"},
            422,
            "Md5 must have 10 to 20 letters and digits, an uppercase, a lowercase and a digit among them",
        ),
    ],
)
def test_wrong_configurations_are_refused(tmp_path: Path, change: dict[str, Any], status: int, message: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            assert await refused(lab, f"{PROJECT}/bgp-configs", {**BGP, **change}, status) == [message]
            assert (await lab.client.get(f"{PROJECT}/bgp-config")).json() == {}

    asyncio.run(run())


def test_wrong_sessions_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            early = f"/metal/v1/devices/{(await lab.order())['id']}/bgp/sessions"
            disabled = await refused(lab, early, {"address_family": "ipv4"})
            assert disabled == ["BGP is not enabled for this project"]
            sessions = f"{await enabled(lab)}/bgp/sessions"
            unknown = "Address family is not included in the list"
            assert await refused(lab, sessions, {}) == [unknown]
            assert await refused(lab, sessions, {"address_family": "ipx", "default_route": "yes"}) == [
                unknown,
                "Default route must be true or false",
            ]
            no_address = "Device has no IPv6 address for this session"
            assert await refused(lab, sessions, {"address_family": "ipv6"}) == [no_address]
            session = await made(lab, sessions, {"address_family": "ipv4"})
            taken = "Address family has already been taken"
            assert await refused(lab, sessions, {"address_family": "ipv4"}) == [taken]
            assert (await lab.client.delete(session["href"])).status_code == 204
            assert (await lab.client.get(session["href"])).status_code == 404

    asyncio.run(run())


def test_the_router_follows_and_is_asked(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await enabled(lab)
            session = await made(lab, f"{device}/bgp/sessions", {"address_family": "ipv4", "default_route": True})
            peer = Peer(
                name=session["id"],
                address="203.0.113.1",
                asn=65000,
                password="Secret1234",
                prefixes=(),
                default_route=True,
            )
            assert lab.router.told == [Routes(), Routes(peers=(peer,))]
            block = await made(lab, f"{PROJECT}/ips", BLOCK)
            assert lab.router.told[-1].peers[0].prefixes == ("192.0.2.128/30",)
            lab.router.sees[session["id"]] = Seen(states=("up", "down"), learned=("192.0.2.129/32",))
            shown = (await lab.client.get(f"{session['href']}?include=device")).json()
            assert (shown["status"], shown["learned_routes"]) == ("up,down", ["192.0.2.129/32"])
            assert f"/metal/v1/devices/{shown['device']['id']}" == device
            config = (await lab.client.get(f"{PROJECT}/bgp-config")).json()
            assert [entry["status"] for entry in config["sessions"]] == ["up,down"]
            await lab.client.delete(block["href"])
            assert (await lab.client.delete(device)).status_code == 204
            await lab.until(lambda: not lab.devices and lab.router.told[-1] == Routes())
            assert not lab.account.table(BgpSession)

    asyncio.run(run())


def test_a_router_that_refuses_is_no_secret(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await enabled(lab)
            lab.router.refuse = "BIRD does not answer"
            errors = await refused(lab, f"{device}/bgp/sessions", {"address_family": "ipv4"}, 503)
            assert errors == ["BIRD does not answer"]
            lab.router.refuse = None
            await lab.routing.commit()
            assert len(lab.router.told[-1].peers) == 1

    asyncio.run(run())


@pytest.mark.parametrize("md5", ["Secret1234", None])
def test_a_device_is_told_its_neighbors(tmp_path: Path, md5: str | None) -> None:
    """The fields that a machine finds in its metadata, under the name they read them from."""

    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await enabled(lab, md5=md5)
            assert (await lab.client.get(f"{device}/bgp/neighbors")).json() == {"bgp_neighbors": []}
            await made(lab, f"{PROJECT}/ips", BLOCK)
            await made(lab, f"{device}/bgp/sessions", {"address_family": "ipv4", "default_route": True})
            expected = [
                {
                    "address_family": 4,
                    "customer_as": 65000,
                    "customer_ip": "203.0.113.1",
                    "md5_enabled": md5 is not None,
                    "md5_password": md5,
                    "multihop": True,
                    "peer_as": 65530,
                    "peer_ips": ["169.254.255.1", "169.254.255.2"],
                    "routes_in": [{"route": "192.0.2.128/30", "exact": False}],
                    "routes_out": [{"route": "0.0.0.0/0", "exact": True}],
                }
            ]
            assert (await lab.client.get(f"{device}/bgp/neighbors")).json() == {"bgp_neighbors": expected}
            async with lab.machine("198.51.100.1") as machine:
                assert (await machine.get("/metadata")).json()["bgp_neighbors"] == expected

    asyncio.run(run())


def test_addresses_and_bgp_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            device = await enabled(lab)
            block = await made(lab, f"{PROJECT}/ips", {**BLOCK, "tags": ["a"], "customdata": {"b": 1}})
            await made(lab, f"{device}/ips", {"address": "192.0.2.130/31"})
            await made(lab, f"{device}/bgp/sessions", {"address_family": "ipv4"})
            told = lab.router.told[-1]
            seen = [(await lab.client.get(path)).json() for path in (block["href"], f"{PROJECT}/bgp-config")]
        async with world(tmp_path) as lab:
            assert lab.router.told == [told]
            assert len(told.peers) == len(told.static) == 1
            again = [(await lab.client.get(path)).json() for path in (block["href"], f"{PROJECT}/bgp-config")]
            assert again == seen
            inventory = (await lab.client.get("/lab/inventory")).json()
            assert [entry["name"] for entry in inventory["reservations"]] == ["192.0.2.128/30"]
            assert [entry["name"] for entry in inventory["bgp_sessions"]] == ["ipv4"]

    asyncio.run(run())


def test_a_project_with_reservations_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            project = await made(lab, "/metal/v1/projects", {"name": "another"})
            assert project["id"] != IDENTITY.project_id
            block = await made(lab, f"{project['href']}/ips", BLOCK)
            assert (await lab.client.post(f"{project['href']}/bgp-configs", json=BGP)).status_code == 204
            assert "IP reservations" in (await lab.client.delete(project["href"])).json()["errors"][0]
            assert (await lab.client.delete(block["href"])).status_code == 204
            assert (await lab.client.delete(project["href"])).status_code == 204
            assert not lab.account.table(BgpConfig)

    asyncio.run(run())
