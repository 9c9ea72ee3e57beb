"""Elastic addresses and BGP: what the API refuses, what it tells the router and the machine, what survives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.addresses import Reservation, lowest
from lab.metal_api.routing import BgpConfig, BgpSession
from lab.network.bgp import Peer, Routes, Seen
from tests.lab.metal_api.harness import API, PROJECT, World, world

BGP: dict[str, Any] = {"deployment_type": "local", "asn": 65000, "md5": "Secret1234"}
BLOCK: dict[str, Any] = {"type": "public_ipv4", "quantity": 4, "metro": "lb"}
BLOCKS, CONFIG = f"{PROJECT}/ips", f"{PROJECT}/bgp-configs"
MIXED = "Md5 must have an uppercase letter, a lowercase letter and a digit among its characters"


async def enabled(lab: World, **changes: Any) -> str:
    """The path of a device in a project with BGP."""
    await lab.post(CONFIG, {**BGP, **changes}, status=204)
    return (await lab.order())["href"]


@pytest.mark.parametrize(
    ("taken", "size", "found"),
    [
        ([], 8, "10.64.0.0/29"),
        (["10.64.0.0/29"], 8, "10.64.0.8/29"),
        (["10.64.0.0/32"], 8, "10.64.0.8/29"),
        (["10.64.0.8/29"], 8, "10.64.0.0/29"),
        (["10.64.0.8/29"], 16, "10.64.0.16/28"),
        (["10.64.0.128/25", "10.64.0.0/25"], 1, None),
        (["10.64.0.255/32"], 256, None),
        (["10.0.0.0/30", "192.0.2.0/24"], 256, "10.64.0.0/24"),
        (["10.0.0.0/8"], 1, None),
        ([], 512, None),
    ],
)
def test_the_lowest_free_block(taken: list[str], size: int, found: str | None) -> None:
    block = lowest("10.64.0.0/24", size, taken)
    assert (block and str(block)) == found


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"type": "gold"}, 422, "Type is not included in the list"),
        ({"type": "global_ipv4"}, 501, "not implemented in the lab: reservations of type global_ipv4"),
        ({"type": "vrf"}, 501, "not implemented in the lab: reservations of type vrf"),
        ({"quantity": 3}, 422, "Quantity must be a power of 2"),
        ({"quantity": True}, 422, "Quantity must be an integer"),
        ({"quantity": 128}, 422, "There are not 128 addresses in a row available in this facility"),
        ({"metro": None}, 422, "Metro can't be blank"),
        ({"metro": "xx"}, 422, "xx is not a valid metro"),
        ({"metro": None, "facility": "nowhere"}, 422, "nowhere is not a valid facility"),
        ({"facility": "lab1"}, 422, "Cannot specify both metro and facility"),
        ({"tags": "a"}, 422, "Tags must be a list"),
        ({"details": 1}, 422, "Details must be a string"),
        ({"customdata": "no json"}, 422, "Customdata must be a JSON object"),
    ],
)
async def test_wrong_reservations_are_refused(lab: World, change: dict[str, Any], status: int, message: str) -> None:
    assert await lab.refused(BLOCKS, {**BLOCK, **change}, status=status) == [message]
    assert not lab.account.table(Reservation)


async def test_blocks_do_not_overlap_and_are_used_again(lab: World) -> None:
    one = await lab.post(BLOCKS, {**BLOCK, "quantity": 1})
    four = await lab.post(BLOCKS, {**BLOCK, "metro": "LB", "details": "pool"})
    in_facility = await lab.post(BLOCKS, {"type": "public_ipv4", "quantity": 2, "facility": "lab1"})
    places = [(block["network"], block["cidr"]) for block in (one, four, in_facility)]
    assert places == [("192.0.2.128", 32), ("192.0.2.132", 30), ("192.0.2.130", 31)]
    assert (four["facility"], in_facility["facility"]["code"], four["details"]) == (None, "lab1", "pool")
    assert (four["management"], four["manageable"], four["public"]) == (False, True, True)
    await lab.delete(one["href"])
    await lab.delete(one["href"], status=404)
    again = await lab.post(BLOCKS, {**BLOCK, "quantity": 1})
    assert (again["network"], again["id"] == one["id"]) == ("192.0.2.128", False)


async def test_a_projects_list_has_both_kinds_and_pages(lab: World) -> None:
    await lab.order()
    block = await lab.post(BLOCKS, BLOCK)
    listed = (await lab.get(BLOCKS, include="assignments"))["ip_addresses"]
    assert [entry["address"] for entry in listed] == ["198.51.100.0", "203.0.113.0", "192.0.2.128"]
    assert [[each["management"] for each in entry["assignments"]] for entry in listed] == [[True], [True], []]
    page = await lab.get(BLOCKS, per_page="2", page="2")
    assert [entry["id"] for entry in page["ip_addresses"]] == [block["id"]]
    assert (page["meta"]["total"], page["meta"]["next"]) == (3, None)
    for entry in listed:
        assert (await lab.get(entry["href"]))["id"] == entry["id"]
    assert "go with their device" in (await lab.delete(listed[0]["href"], status=422))["errors"][0]
    assert (await lab.get(block["href"], include="project"))["project"]["name"] == "lab"


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"deployment_type": "global"}, 501, "not implemented in the lab: global BGP deployments"),
        ({"deployment_type": "x"}, 422, "Deployment type is not included in the list"),
        ({"asn": 65001}, 422, "Asn must be 65000 in a local deployment"),
        ({"asn": None}, 422, "Asn can't be blank"),
        ({"md5": "short"}, 422, "Md5 String should match pattern '^[a-zA-Z0-9]{10,20}$'"),
        *(({"md5": text}, 422, MIXED) for text in ("lowercase123", "UPPERCASE123", "NoDigitsHere", "1234567890")),
    ],
)
async def test_wrong_configurations_are_refused(lab: World, change: dict[str, Any], status: int, message: str) -> None:
    assert await lab.refused(CONFIG, {**BGP, **change}, status=status) == [message]
    assert await lab.get(f"{PROJECT}/bgp-config") == {}


async def test_wrong_sessions_are_refused(lab: World) -> None:
    early = f"{(await lab.order())['href']}/bgp/sessions"
    assert await lab.refused(early, {"address_family": "ipv4"}) == ["BGP is not enabled for this project"]
    sessions = f"{await enabled(lab)}/bgp/sessions"
    assert await lab.refused(sessions, {}) == ["Address family can't be blank"]
    assert await lab.refused(sessions, {"address_family": "ipx", "default_route": "yes"}) == [
        "Address family is not included in the list",
        "Default route must be true or false",
    ]
    no_address = "Device has no IPv6 address for this session"
    assert await lab.refused(sessions, {"address_family": "ipv6"}) == [no_address]
    session = await lab.post(sessions, {"address_family": "ipv4"})
    assert await lab.refused(sessions, {"address_family": "ipv4"}) == ["Address family has already been taken"]
    await lab.delete(session["href"])
    await lab.get(session["href"], status=404)


async def test_the_router_follows_and_is_asked(lab: World) -> None:
    device = await enabled(lab)
    session = await lab.post(f"{device}/bgp/sessions", {"address_family": "ipv4", "default_route": True})
    peer = Peer(
        name=session["id"], address="203.0.113.1", asn=65000, password="Secret1234", prefixes=(), default_route=True
    )
    assert lab.router.told == [Routes(), Routes(peers=(peer,))]
    block = await lab.post(BLOCKS, BLOCK)
    assert lab.router.told[-1].peers[0].prefixes == ("192.0.2.128/30",)
    lab.router.sees[session["id"]] = Seen(states=("up", "down"), learned=("192.0.2.129/32",))
    shown = await lab.get(session["href"], include="device")
    assert (shown["status"], shown["learned_routes"]) == ("up,down", ["192.0.2.129/32"])
    assert shown["device"]["href"] == device
    for path in (f"{device}/bgp/sessions", f"{PROJECT}/bgp/sessions"):
        assert [entry["status"] for entry in (await lab.get(path))["bgp_sessions"]] == ["up,down"]
    config = await lab.get(f"{PROJECT}/bgp-config")
    assert [entry["status"] for entry in config["sessions"]] == ["up,down"]
    await lab.delete(block["href"])
    await lab.delete(device)
    await lab.until(lambda: not lab.devices and lab.router.told[-1] == Routes())
    assert not lab.account.table(BgpSession)


async def test_a_router_that_refuses_is_no_secret(lab: World) -> None:
    device = await enabled(lab)
    lab.router.refuse = "BIRD does not answer"
    errors = await lab.refused(f"{device}/bgp/sessions", {"address_family": "ipv4"}, status=503)
    assert errors == ["BIRD does not answer"]
    lab.router.refuse = None
    await lab.routing.commit()
    assert len(lab.router.told[-1].peers) == 1


@pytest.mark.parametrize("md5", ["Secret1234", None])
async def test_a_device_is_told_its_neighbors(lab: World, md5: str | None) -> None:
    """The fields that a machine finds in its metadata, under the name they read them from."""
    device = await enabled(lab, md5=md5)
    assert await lab.get(f"{device}/bgp/neighbors") == {"bgp_neighbors": []}
    await lab.post(BLOCKS, BLOCK)
    await lab.post(f"{device}/bgp/sessions", {"address_family": "ipv4", "default_route": True})
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
    assert await lab.get(f"{device}/bgp/neighbors") == {"bgp_neighbors": expected}
    async with lab.machine("198.51.100.1") as machine:
        assert (await machine.get("/metadata")).json()["bgp_neighbors"] == expected


async def test_the_router_is_told_everything_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as lab:
        device = await enabled(lab)
        await lab.post(BLOCKS, {**BLOCK, "tags": ["a"], "customdata": {"b": 1}})
        await lab.post(f"{device}/bgp/sessions", {"address_family": "ipv4"})
        told = lab.router.told[-1]
    async with world(tmp_path) as lab:
        assert lab.router.told == [told]
        assert len(told.peers) == 1
        inventory = await lab.get("/lab/inventory")
        assert [entry["name"] for entry in inventory["reservations"]] == ["192.0.2.128/30"]
        assert [entry["name"] for entry in inventory["bgp_sessions"]] == ["ipv4"]


async def test_bgp_goes_with_its_project(lab: World) -> None:
    project = (await lab.post(f"{API}/projects", {"name": "another"}))["href"]
    await lab.post(f"{project}/bgp-configs", BGP, status=204)
    await lab.delete(project)
    assert not lab.account.table(BgpConfig)
