"""VLANs, the bonds that are in them, and metal gateways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.metal_api import vlans
from lab.metal_api.addresses import Reservation
from lab.metal_api.exceptions import NotFound
from tests.lab.metal_api.harness import API, PROJECT, World, world

NETWORKS = f"{PROJECT}/virtual-networks"
GATEWAYS = f"{PROJECT}/metal-gateways"
NOWHERE = "33333333-3333-4333-8333-333333333333"


async def vlan(lab: World, **body: Any) -> dict[str, Any]:
    """A new VLAN."""
    return await lab.post(NETWORKS, {"metro": "lb", **body})


async def bond(lab: World) -> str:
    """The bond of a new device."""
    return (await lab.order())["network_ports"][0]["href"]


async def batch(lab: World, bond: str, *wanted: dict[str, Any]) -> dict[str, Any]:
    """A batch that was carried out."""
    path = f"{bond}/vlan-assignments/batches"
    made = await lab.post(path, {"vlan_assignments": list(wanted)})
    lab.elapse(1)
    return await lab.get(f"{path}/{made['id']}")


async def on(lab: World, bond: str) -> list[int]:
    """The numbers of the VLANs on a bond."""
    return [each["vxlan"] for each in (await lab.get(bond, include="virtual_networks"))["virtual_networks"]]


async def test_numbers_are_the_projects_own_in_every_metro(lab: World) -> None:
    assert [(await vlan(lab, vxlan=wanted))["vxlan"] for wanted in (1000, 3999, 2)] == [1000, 3999, 2]
    assert [(await vlan(lab))["vxlan"] for _ in range(2)] == [1001, 1002]
    assert (await vlan(lab, metro="da", vxlan=1000))["vxlan"] == 1000
    assert await lab.refused(NETWORKS, {"metro": "LB", "vxlan": 1000}) == ["Vxlan has already been taken"]
    project = await lab.post(f"{API}/projects", {"name": "other"})
    assert (await lab.post(f"{project['href']}/virtual-networks", {"metro": "lb", "vxlan": 1000}))["vxlan"] == 1000


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, ["Metro can't be blank"]),
        ({"metro": "xx"}, ["xx is not a valid metro"]),
        ({"metro": "lb", "vxlan": 1}, ["Vxlan must be from 2 to 3999"]),
        ({"metro": "lb", "vxlan": "1000", "tags": 1}, ["Vxlan must be an integer", "Tags must be a list"]),
    ],
)
async def test_vlans_that_are_refused(lab: World, body: dict[str, Any], errors: list[str]) -> None:
    assert await lab.refused(NETWORKS, body) == errors
    assert await lab.get(NETWORKS) == {"virtual_networks": []}


async def test_places_are_metros_named_by_code_or_id(lab: World) -> None:
    metro = (await vlan(lab))["metro"]["href"].rpartition("/")[2]
    assert (await vlan(lab, metro=metro))["metro_code"] == "lb"
    await lab.refused(NETWORKS, {"facility": "da11"}, status=501)


async def test_a_vlan_in_use_stays(lab: World) -> None:
    network, device = await vlan(lab), await lab.order()
    port = device["network_ports"][0]["href"]
    await batch(lab, port, {"vlan": network["id"]})
    gateway = await lab.post(GATEWAYS, {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8})
    shown = await lab.get(network["href"], include="instances,instances.network_ports.virtual_networks")
    assert [entry["id"] for entry in shown["instances"]] == [device["id"]]
    assert shown["instances"][0]["network_ports"][0]["virtual_networks"][0]["vxlan"] == 1000
    assert [entry["id"] for entry in shown["metal_gateways"]] == [gateway["id"]]
    errors = (await lab.delete(network["href"], status=422))["errors"]
    assert ["ports assigned" in errors[0], "a metal gateway" in errors[1]] == [True, True]
    await lab.post(f"{port}/unassign", {"vnid": network["id"]}, status=200)
    assert await lab.refused(f"{port}/unassign", {"vnid": "1000"}) == ["Virtual network 1000 not assigned"]
    await lab.delete(gateway["href"], status=202)
    await lab.delete(network["href"])  # the official provider does not wait
    assert (await lab.get(gateway["href"]))["state"] == "deleting"


async def test_devices_that_are_being_deprovisioned_use_nothing(lab: World) -> None:
    network, device = await vlan(lab), await lab.order()
    await batch(lab, device["network_ports"][0]["href"], {"vlan": network["id"]})
    lab.clock.runs.clear()
    await lab.delete(device["href"])
    assert (await lab.get(network["href"]))["instances"] == []
    await lab.delete(network["href"])


async def test_every_device_has_a_bond_in_layer_3(lab: World) -> None:
    device = await lab.order()
    first, *rest = device["network_ports"]
    assert (first["name"], first["type"], first["network_type"]) == ("bond0", "NetworkBondPort", "layer3")
    assert first["data"] == {"bonded": True}
    assert [port["name"] for port in rest] == ["eth0", "eth1"]
    for port in rest:
        assert (port["type"], port["data"]["bonded"]) == ("NetworkPort", True)
        assert port["bond"] == {"id": first["id"], "name": "bond0"}
    assert len({port["data"]["mac"] for port in rest}) == 2
    assert await lab.get(first["href"]) == first
    for other in (device["id"], "x"):
        await lab.get(f"{API}/ports/{other}", status=404)
    path = f"{rest[0]['href']}/vlan-assignments/batches"
    assert "other ports than the bond" in (await lab.refused(path, {}, status=501))[0]


async def test_batches_are_carried_out_a_little_later(lab: World) -> None:
    port, first, second = await bond(lab), await vlan(lab), await vlan(lab)
    await batch(lab, port, {"vlan": first["id"]})
    path = f"{port}/vlan-assignments/batches"
    wanted = [{"vlan": "1000", "state": "unassigned"}, {"vlan": second["id"], "state": "assigned", "native": False}]
    made = await lab.post(path, {"vlan_assignments": wanted})
    assert (made["state"], made["quantity"]) == ("queued", 2)
    assert (await lab.get(f"{path}/{made['id']}"))["state"] == "in_progress"
    assert await on(lab, port) == [1000]
    assert (await lab.get(port))["network_type"] == "hybrid-bonded"
    lab.elapse(1)
    done = await lab.get(f"{path}/{made['id']}")
    assert (done["state"], done["error_messages"]) == ("completed", [])
    changes = [(entry["vlan"], entry["state"]) for entry in done["vlan_assignments"]]
    assert changes == [(1000, "unassigned"), (1001, "assigned")]
    assert await on(lab, port) == [1001]
    assert [entry["id"] for entry in (await lab.get(path))["batches"]][-1] == made["id"]
    assert (await batch(lab, port, *wanted))["state"] == "completed", "it says what is to be"


@pytest.mark.parametrize(
    ("wanted", "status", "error"),
    [
        ([], 422, "Vlan assignments"),
        ([{"vlan": "7"}], 422, "7 is not in this project and in lb"),
        ([{"vlan": "2000"}], 422, "2000 is not in this project and in lb"),
        ([{"vlan": "1000", "state": "gone"}], 422, "state is not included in the list"),
        ([{"vlan": "1000", "native": True}], 501, "native virtual networks"),
    ],
)
async def test_batches_that_are_refused(lab: World, wanted: list[Any], status: int, error: str) -> None:
    port = await bond(lab)
    await vlan(lab)
    await vlan(lab, metro="da", vxlan=2000)
    (told,) = await lab.refused(f"{port}/vlan-assignments/batches", {"vlan_assignments": wanted}, status=status)
    assert error in told


async def test_a_batch_that_fails_changes_nothing(lab: World) -> None:
    port, first, second = await bond(lab), await vlan(lab), await vlan(lab)
    await batch(lab, port, {"vlan": first["id"]})
    path = f"{port}/vlan-assignments/batches"
    wanted = [{"vlan": "1000", "state": "unassigned"}, {"vlan": "1001"}]
    made = await lab.post(path, {"vlan_assignments": wanted})
    await lab.delete(second["href"])
    lab.elapse(1)
    done = await lab.get(f"{path}/{made['id']}")
    assert (done["state"], done["error_messages"]) == ("failed", ["Not found"])
    assert await on(lab, port) == [1000]


@pytest.mark.parametrize(
    ("error", "told"),
    [(NotFound("Gone"), "Gone"), (KeyError("nothing"), "Internal error: KeyError: 'nothing'")],
)
async def test_what_a_batch_meets_is_told_on_it(
    lab: World, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    """And not answered to whoever asks for something else when it is due."""
    port = await bond(lab)
    await vlan(lab)
    path = f"{port}/vlan-assignments/batches"
    made = await lab.post(path, {"vlan_assignments": [{"vlan": "1000"}]})

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(vlans, "_assign", refuse)
    lab.elapse(1)
    await lab.get(NETWORKS)
    done = await lab.get(f"{path}/{made['id']}")
    assert (done["state"], done["error_messages"]) == ("failed", [told])
    assert await on(lab, port) == []


async def test_a_gateway_with_a_private_block(lab: World) -> None:
    network = await vlan(lab)
    gateway = await lab.post(GATEWAYS, {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 16})
    inside = gateway["ip_reservation"]
    assert (gateway["state"], inside["type"], inside["cidr"], inside["public"]) == ("ready", "private_ipv4", 28, False)
    assert inside["gateway"] == "10.64.0.1"
    assert "metal gateway" in (await lab.delete(inside["href"], status=422))["errors"][0]
    again = {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8}
    assert await lab.refused(GATEWAYS, again) == [f"Virtual network {network['id']} already has a metal gateway"]
    assert [entry["id"] for entry in (await lab.get(f"{PROJECT}/ips"))["ip_addresses"]] == [inside["id"]]
    shown = await lab.get(gateway["href"], include="project,virtual_network")
    assert (shown["project"]["name"], shown["virtual_network"]["vxlan"]) == ("lab", 1000)
    (lite,) = shown["virtual_network"]["metal_gateways"]
    assert (lite["gateway_address"], lite["vlan"], lite["state"]) == ("10.64.0.1/28", 1000, "ready")
    await batch(lab, await bond(lab), {"vlan": network["id"]})
    assert (await lab.get(gateway["href"]))["state"] == "active"
    assert (await lab.delete(gateway["href"], status=202))["state"] == "deleting"
    assert (await lab.delete(gateway["href"], status=202))["state"] == "deleting"
    lab.elapse(1)
    await lab.get(gateway["href"], status=404)
    assert not lab.account.table(Reservation)


@pytest.mark.parametrize(
    ("wanted", "status", "error"),
    [
        ({}, 422, "Private ipv4 subnet size can't be blank"),
        ({"private_ipv4_subnet_size": 12}, 422, "Private ipv4 subnet size is not included in the list"),
        ({"virtual_network_id": NOWHERE, "private_ipv4_subnet_size": 8}, 422, "not in this project"),
        ({"ip_reservation_id": NOWHERE}, 501, "ip_reservation_id"),
        ({"vrf_id": NOWHERE}, 501, "vrf_id"),
    ],
)
async def test_gateways_that_are_refused(lab: World, wanted: dict[str, Any], status: int, error: str) -> None:
    body = {"virtual_network_id": (await vlan(lab))["id"], **wanted}
    (problem,) = await lab.refused(GATEWAYS, body, status=status)
    assert error in problem
    assert (await lab.get(GATEWAYS))["metal_gateways"] == []


async def test_what_is_under_way_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as lab:
        port, network = await bond(lab), await vlan(lab)
        path = f"{port}/vlan-assignments/batches"
        made = await lab.post(path, {"vlan_assignments": [{"vlan": "1000"}]})
        wanted = {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8}
        gateway = await lab.post(GATEWAYS, wanted)
        await lab.delete(gateway["href"], status=202)
    async with world(tmp_path) as lab:
        assert (await lab.get(gateway["href"]))["state"] == "deleting"
        lab.elapse(1)
        assert (await lab.get(f"{path}/{made['id']}"))["state"] == "completed"
        assert await on(lab, port) == [1000]
        assert (await lab.get(GATEWAYS))["metal_gateways"] == []
