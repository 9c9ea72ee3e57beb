"""Orders of devices: what they may ask for, what they are refused for, what they take."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from lab.metal_api.ordering import UNSUPPORTED
from tests.lab.metal_api.harness import API, ORDER, PROJECT, PUBLIC_KEY, World

IPV4 = {"address_family": 4}
PRIVATE = {"address_family": 4, "public": False}
END = "has no provisionable c3.small.x86 servers matching your criteria"


async def refused(lab: World, **changes: Any) -> list[str]:
    """Why an order is refused."""
    return await lab.refused(f"{PROJECT}/devices", {**ORDER, **changes})


async def test_a_device_has_what_the_official_clients_dereference(lab: World) -> None:
    key = await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
    device = await lab.order(tags=["metal-ipi"], userdata="{}")
    assert device["state"] == "queued"
    assert (device["plan"]["slug"], device["operating_system"]["slug"]) == ("c3.small.x86", "custom_ipxe")
    assert (device["facility"]["code"], device["metro"]["code"]) == ("lab1", "lb")
    assert (device["project"], device["ssh_keys"]) == ({"href": PROJECT}, [{"href": key["href"]}])
    public, private = device["ip_addresses"]
    assert (public["address"], public["gateway"], public["cidr"]) == ("198.51.100.1", "198.51.100.0", 31)
    assert (private["address"], private["public"], private["management"]) == ("203.0.113.1", False, True)
    assert device["sos"] == f"{device['id']}@sos.lab1.platformequinix.com"
    assert len(device["root_password"]) == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": "huge"}, "huge is not a valid plan"),
        ({"plan": None}, "Plan can't be blank"),
        ({"metro": "zz"}, "zz is not a valid metro"),
        ({"metro": None}, "Facility can't be blank"),
        ({"facility": ["lab1"]}, "Cannot specify both metro and facility"),
        ({"metro": None, "facility": ["nowhere"]}, "nowhere is not a valid facility"),
        ({"operating_system": "beos"}, "beos is not a valid operating_system"),
        ({"hostname": "no spaces"}, "Hostname is invalid"),
        ({"userdata": "x" * 70000}, "Userdata is too long (maximum is 65535 bytes)"),
        ({"tags": "one"}, "Tags must be a list"),
        ({"project_ssh_keys": ["nope"]}, "project_ssh_keys: nope is not a key of this project"),
        ({"ipxe_script_url": "ftp://x"}, "Ipxe script url is not a valid URL"),
        (
            {"ipxe_script_url": None},
            "ipxe_script_url or userdata starting with #!ipxe must be given when operating_system is custom_ipxe",
        ),
        (
            {"plan": "c3.large.arm64", "operating_system": "windows_2022"},
            "windows_2022 is not provisionable on c3.large.arm64",
        ),
        (
            {"plan": "c3.large.arm64", "metro": "ny"},
            "The metro ny has no provisionable c3.large.arm64 servers matching your criteria",
        ),
        ({"plan": "n3.xlarge.opt-m4s2"}, "n3.xlarge.opt-m4s2 is not available on demand"),
        ({"termination_time": "soon"}, "soon is not a valid time"),
        ({"termination_time": "2020-01-01T00:00:00Z"}, "Termination time must be in the future"),
        ({"ip_addresses": [IPV4, {**PRIVATE, "cidr": 32}]}, "Private ipv4 subnet size must be from 28 to 31"),
        ({"ip_addresses": [{**IPV4, "cidr": 27}, PRIVATE]}, "Public ipv4 subnet size must be from 28 to 31"),
        ({"ip_addresses": [IPV4]}, "Private IPv4 address is required"),
    ],
)
async def test_a_wrong_order_is_unprocessable(lab: World, change: dict[str, Any], message: str) -> None:
    assert await refused(lab, **change) == [message]
    assert not lab.devices


async def test_all_problems_come_at_once(lab: World) -> None:
    assert len(await refused(lab, plan="huge", hostname="no spaces", tags="one")) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"operating_system": "debian_12"},
        {"ip_addresses": [{"address_family": 6, "public": True}]},
        {"ip_addresses": [PRIVATE]},
        *({name: True} for name in UNSUPPORTED),
    ],
)
async def test_what_the_lab_cannot_make_is_refused_not_ignored(lab: World, change: dict[str, Any]) -> None:
    await lab.post(f"{PROJECT}/devices", {**ORDER, **change}, status=501)


async def test_an_arm64_device_with_its_script_in_userdata_can_be_ordered(lab: World) -> None:
    device = await lab.order(plan="c3.large.arm64", ipxe_script_url=None, userdata="#!ipxe\nboot")
    assert (await lab.booted(device["id"]))["state"] == "active"


@pytest.mark.parametrize(
    ("given", "shown"), [({"a": [1]}, {"a": [1]}), ('{"a": [1]}', {"a": [1]}), ("", {}), (None, {"old": 1})]
)
async def test_customdata_is_taken_as_packngo_writes_it(lab: World, given: Any, shown: Any) -> None:
    device = await lab.order(customdata={"old": 1})
    changed = await lab.call("PUT", device["href"], json={"customdata": given}, status=200)
    assert changed["customdata"] == (await lab.get(device["href"]))["customdata"] == shown
    assert changed["hostname"] == device["hostname"]


async def test_a_device_that_is_being_released_is_not_changed(lab: World) -> None:
    lab.clock.runs.clear()
    device = await lab.order()
    await lab.delete(device["href"])
    answer = await lab.call("PUT", device["href"], json={"hostname": "h"}, status=422)
    assert answer == {"errors": ["Device is being deprovisioned"]}
    await lab.delete(device["href"])


async def test_orders_take_from_what_there_is_and_give_it_back(lab: World) -> None:
    told = {"metro": "da", "plan": "c3.small.x86", "servers": 2}
    await lab.call("PUT", "/lab/capacity", json=told, status=200)
    order = {"metro": None, "facility": ["da11", "da6"]}
    placed = [(await lab.order(**order)) for _ in range(4)]
    assert [device["facility"]["code"] for device in placed] == ["da11", "da11", "da6", "da6"]
    assert await refused(lab, metro="da") == [f"The metro da {END}"]
    assert await refused(lab, **order) == [f"The facility da11, da6 {END}"]
    await lab.delete(placed[0]["href"])
    assert await refused(lab, metro="da") == [f"The metro da {END}"]
    await lab.gone(placed[0])
    assert (await lab.order(metro="da"))["facility"]["code"] == "da11"
    await lab.call("PUT", "/lab/capacity", json={**told, "servers": None}, status=200)
    assert (await lab.order(metro="da"))["facility"]["code"] == "da6"


async def test_capacity_is_checked_by_quantity(lab: World) -> None:
    for metro, servers in (("da", 2), ("ny", 0)):
        told = {"metro": metro, "plan": "c3.small.x86", "servers": servers}
        await lab.call("PUT", "/lab/capacity", json=told, status=200)

    async def check(kind: str, *wanted: tuple[str, str | int]) -> list[bool]:
        path = f"{API}/capacity/metros" if kind == "metro" else f"{API}/capacity"
        asked = [{kind: place, "plan": "c3.small.x86", "quantity": quantity} for place, quantity in wanted]
        answers = (await lab.post(path, {"servers": asked}, status=200))["servers"]
        assert [entry["quantity"] for entry in answers] == [each for _, each in wanted]
        return [entry["available"] for entry in answers]

    assert await check("facility", ("da11", "2"), ("da11", "3"), ("lab1", "1000")) == [True, False, True]
    assert await check("metro", ("da", "4"), ("da", "5"), ("ny", "1")) == [True, False, False]
    wrong = {"servers": [{"metro": "zz", "plan": "huge", "quantity": "some"}]}
    assert set(await lab.refused(f"{API}/capacity/metros", wrong)) == {
        "zz is not a valid metro",
        "huge is not a valid plan",
        "Quantity must be a number",
    }


@pytest.mark.parametrize(
    "change", [{"metro": None}, {"servers": -1}, {"servers": 1.5}, {"plan": "huge"}, {"level": "limited"}]
)
async def test_what_cannot_be_told_of_capacity_is_refused(lab: World, change: dict[str, Any]) -> None:
    told = {"metro": "da", "plan": "c3.small.x86", "servers": 1, **change}
    await lab.call("PUT", "/lab/capacity", json=told, status=422)


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00+03:00", "2026-01-01T09:00:00Z"),
        ("2026-01-01T12:00:00", "2026-01-01T12:00:00Z"),
    ],
)
async def test_a_device_ends_at_its_time(lab: World, given: str, time: str) -> None:
    device, other = await lab.order(termination_time=given), await lab.order()
    assert device["termination_time"] == time
    lab.elapse(8.9 * 3600)
    assert (await lab.device(device["id"]))["state"] != "deprovisioning"
    lab.elapse(4 * 3600)
    assert (await lab.device(device["id"]))["state"] == "deprovisioning"
    await lab.gone(device)
    assert other["id"] in lab.devices


async def test_networks_of_a_size(lab: World) -> None:
    await lab.order()
    large = await lab.order(ip_addresses=[{**IPV4, "public": True, "cidr": 29}, PRIVATE])
    public, private = large["ip_addresses"]
    assert (public["address"], public["gateway"], public["cidr"]) == ("198.51.100.10", "198.51.100.9", 29)
    assert (public["network"], public["netmask"]) == ("198.51.100.8", "255.255.255.248")
    assert private["cidr"] == 31
    both = await lab.order(ip_addresses=[{**IPV4, "cidr": 30}, {**PRIVATE, "cidr": 28}])
    assert [address["cidr"] for address in both["ip_addresses"]] == [30, 28]
    await lab.order()
    every = [address for device in lab.devices.values() for address in device.addresses]
    networks = [ipaddress.IPv4Network(f"{each.address}/{each.prefix}", strict=False) for each in every]
    assert not any(one.overlaps(other) for one in networks for other in networks if one is not other)
    blocks = (await lab.get(f"{PROJECT}/ips"))["ip_addresses"]
    assert sorted(block["cidr"] for block in blocks if block["public"]) == [29, 30, 31, 31]
    await lab.until(lambda: large["id"] in lab.machines.specs)
    assert lab.machines.specs[large["id"]].addresses[0].prefix == 29
