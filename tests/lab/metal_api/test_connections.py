"""Interconnections, their ports and virtual circuits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.metal_api.harness import IDENTITY, PROJECT, World, world
from tests.lab.metal_api.judging import judged

BASE = "/metal/v1"
ORGANIZATION = f"{BASE}/organizations/{IDENTITY.organization_id}/connections"
DEDICATED = {"name": "office", "metro": "lb", "type": "dedicated", "redundancy": "primary"}
SHARED = {
    **{"name": "cloud", "metro": "lb", "type": "shared", "redundancy": "redundant"},
    **{"project": IDENTITY.project_id, "service_token_type": "z_side"},
}


async def posted(lab: World, path: str, body: dict[str, Any], status: int = 201) -> dict[str, Any]:
    """What a POST answers, which must have the status."""
    answer = await lab.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def vlan(lab: World, **body: Any) -> dict[str, Any]:
    """A new VLAN."""
    return await posted(lab, f"{PROJECT}/virtual-networks", {"metro": "lb", **body})


async def shown(lab: World, href: str, **query: str) -> dict[str, Any]:
    """A document."""
    answer = await lab.client.get(href, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def dedicated(lab: World, **changes: Any) -> tuple[str, str]:
    """The hrefs of a dedicated interconnection that is active, and of its first port."""
    connection = await posted(lab, ORGANIZATION, {**DEDICATED, **changes})
    lab.elapse(1)
    return connection["href"], connection["ports"][0]["href"]


def test_a_dedicated_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            connection = await posted(lab, ORGANIZATION, {**DEDICATED, "redundancy": "redundant", "tags": ["a"]})
            assert (connection["status"], connection["mode"], connection["speed"]) == ("pending", "standard", 10**10)
            assert [(port["role"], port["status"]) for port in connection["ports"]] == [
                ("primary", "requested"),
                ("secondary", "requested"),
            ]
            assert (connection["service_tokens"], "token" in connection, "project" in connection) == ([], False, False)
            lab.elapse(1)
            query = {"include": "organization,facility,metro,project"}
            active = await shown(lab, connection["href"], **query)
            assert (active["status"], active["organization"]["id"]) == ("active", IDENTITY.organization_id)
            assert (active["facility"]["code"], active["metro"]["code"]) == ("lab1", "lb")
            assert [(port["status"], port["link_status"]) for port in active["ports"]] == [("active", "up")] * 2
            ports = (await shown(lab, f"{connection['href']}/ports"))["ports"]
            assert ports == active["ports"]
            assert await shown(lab, ports[0]["href"]) == ports[0]
            changed = await lab.client.put(connection["href"], json={"mode": "tunnel", "tags": ["b"], "name": "hq"})
            assert (changed.json()["mode"], changed.json()["tags"], changed.json()["name"]) == ("tunnel", ["b"], "hq")
            assert [e["id"] for e in (await shown(lab, ORGANIZATION))["interconnections"]] == [connection["id"]]
            assert (await shown(lab, f"{PROJECT}/connections"))["interconnections"] == []
            events = (await shown(lab, f"{connection['href']}/events"))["events"]
            assert [event["type"] for event in events] == ["interconnection.active", "interconnection.requested"]
            assert (await lab.client.delete(connection["href"])).status_code == 202
            assert (await shown(lab, connection["href"]))["ports"][0]["status"] == "deleting"
            lab.elapse(1)
            assert (await lab.client.get(connection["href"])).status_code == 404

    asyncio.run(run())


def test_virtual_circuits_on_dedicated_ports(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            connection, port = await dedicated(lab)
            first, second = await vlan(lab), await vlan(lab)
            wanted = {"project_id": IDENTITY.project_id, "nni_vlan": 100, "vnid": first["id"], "name": "c"}
            circuit = await posted(lab, f"{port}/virtual-circuits", wanted)
            assert (circuit["status"], circuit["vnid"], circuit["nni_vlan"]) == ("activating", 1000, 100)
            lab.elapse(1)
            active = await shown(lab, circuit["href"], include="project,port,virtual_network")
            assert (active["status"], active["virtual_network"]["vxlan"]) == ("active", 1000)
            assert (active["project"]["id"], active["port"]["href"]) == (IDENTITY.project_id, port)
            assert (await shown(lab, first["href"]))["assigned_to_virtual_circuit"] is True
            assert (await lab.client.delete(first["href"])).status_code == 422
            refused = await posted(lab, f"{port}/virtual-circuits", wanted, 422)
            assert refused["errors"] == ["Nni vlan has already been taken"]
            mode = (await lab.client.put(connection, json={"mode": "tunnel"})).json()["errors"]
            assert "Please delete them first" in mode[0]
            for vnid, during, after in (
                ("1001", "changing_vlan", "active"),
                ("", "deactivating", "waiting_on_customer_vlan"),
            ):
                changed = (await lab.client.put(circuit["href"], json={"vnid": vnid})).json()
                assert changed["status"] == during
                lab.elapse(1)
                assert (await shown(lab, circuit["href"]))["status"] == after
            assert (await lab.client.delete(second["href"])).status_code == 204
            listed = (await shown(lab, f"{port}/virtual-circuits"))["virtual_circuits"]
            assert listed == (await shown(lab, f"{connection}/virtual-circuits"))["virtual_circuits"]
            assert [entry["id"] for entry in listed] == [circuit["id"]]
            events = (await lab.client.get(f"{circuit['href']}/events")).json()["events"]
            assert [event["state"] for event in events][-2:] == ["active", "activating"]
            assert (await lab.client.delete(circuit["href"])).json()["status"] == "deleting"
            lab.elapse(1)
            assert (await lab.client.get(circuit["href"])).status_code == 404

    asyncio.run(run())


def test_circuits_as_packngo_asks_for_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            _, port = await dedicated(lab)
            path = f"{PROJECT}{port.removeprefix(BASE)}/virtual-circuits"
            circuit = await posted(lab, path, {"vnid": "", "nni_vlan": 7, "speed": "52m"})
            assert (circuit["status"], circuit["speed"]) == ("waiting_on_customer_vlan", 52_000_000)
            pending = await posted(lab, path, {"vnid": ""})
            assert (pending["status"], "nni_vlan" in pending, "speed" in pending) == ("pending", False, False)

    asyncio.run(run())


def test_a_shared_one_waits_for_its_token(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            judged(lab)
            await vlan(lab)
            connection = await posted(lab, f"{PROJECT}/connections", {**SHARED, "vlans": [1000]})
            assert [(t["role"], t["service_token_type"], t["state"]) for t in connection["service_tokens"]] == [
                ("primary", "z_side", "inactive"),
                ("secondary", "z_side", "inactive"),
            ]
            circuits = [circuit for port in connection["ports"] for circuit in port["virtual_circuits"]]
            assert [(circuit["status"], circuit.get("vnid")) for circuit in circuits] == [
                ("pending", 1000),
                ("pending", None),
            ]
            assert circuits[0]["project"]["id"] == IDENTITY.project_id, "where the provider looks for it"
            lab.elapse(60)
            assert (await shown(lab, connection["href"]))["status"] == "pending"
            redeem = f"/lab/connections/{connection['id']}/redeem"
            assert (await lab.client.post(redeem)).json()["status"] == "active"
            assert (await lab.client.post(redeem)).status_code == 422
            await shown(lab, connection["href"])
            lab.elapse(1)
            active = await shown(lab, connection["href"])
            assert [port["virtual_circuits"][0]["status"] for port in active["ports"]] == [
                "active",
                "waiting_on_customer_vlan",
            ]
            assert {token["state"] for token in active["service_tokens"]} == {"active"}
            listed = (await shown(lab, f"{PROJECT}/connections"))["interconnections"]
            assert [entry["id"] for entry in listed] == [connection["id"]]
            assert (await lab.client.delete(circuits[0]["href"])).status_code == 422
            assert (await lab.client.delete(connection["href"])).status_code == 202
            lab.elapse(1)
            assert (await lab.client.get(connection["href"])).status_code == 404
            assert (await lab.client.get(circuits[0]["href"])).status_code == 404

    asyncio.run(run())


def test_a_shared_one_in_the_old_way_has_one_token(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            old = {key: value for key, value in SHARED.items() if key != "service_token_type"}
            connection = await posted(lab, ORGANIZATION, {**old, "mode": "standard"})
            assert connection["service_tokens"] == []
            assert connection["token"]
            assert connection["project"]["href"] == PROJECT
            assert "mode" not in connection

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({**DEDICATED, "name": ""}, "Name can't be blank"),
        ({**DEDICATED, "type": "other"}, "Type is not included in the list"),
        ({**DEDICATED, "redundancy": "double"}, "Redundancy is not included in the list"),
        ({**DEDICATED, "metro": "xx"}, "xx is not a valid metro"),
        ({**DEDICATED, "speed": "50mbps"}, None),
        ({**DEDICATED, "speed": "51mbps"}, "Speed must be one of"),
        ({**DEDICATED, "service_token_type": "a_side"}, "for shared interconnections only"),
        ({**SHARED, "project": None}, "Project can't be blank"),
        ({**SHARED, "mode": "tunnel"}, "Mode tunnel is for dedicated"),
        ({**SHARED, "service_token_type": "a_side"}, "Speed can't be blank"),
        ({**SHARED, "speed": "100gbps"}, "Speed must be one of"),
        ({**SHARED, "vlans": [1000]}, "1000 is not in this project and in lb"),
        ({**SHARED, "vlans": [1, 2, 3]}, "at most 2"),
        ({**DEDICATED, "vlans": [1000]}, "of a shared interconnection"),
    ],
)
def test_what_is_refused(tmp_path: Path, body: dict[str, Any], error: str | None) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            answer = await lab.client.post(ORGANIZATION, json=body)
            if error is None:
                assert answer.status_code == 201
            else:
                assert answer.status_code == 422, answer.text
                assert error in answer.json()["errors"][0]
                assert (await shown(lab, ORGANIZATION))["interconnections"] == []

    asyncio.run(run())


def test_what_only_metal_can_do(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            for change in ({"type": "shared_port_vlan_to_csp"}, {"vrfs": ["x"]}):
                assert (await lab.client.post(ORGANIZATION, json={**SHARED, **change})).status_code == 501

    asyncio.run(run())


def test_a_project_with_circuits_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            project = await posted(lab, f"{BASE}/projects", {"name": "other"})
            _, port = await dedicated(lab)
            circuit = await posted(lab, f"{port}/virtual-circuits", {"project_id": project["id"], "nni_vlan": 9})
            assert "virtual circuits" in (await lab.client.delete(project["href"])).json()["errors"][0]
            await lab.client.delete(circuit["href"])
            assert (await lab.client.delete(project["href"])).status_code == 204

    asyncio.run(run())


def test_they_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            connection, port = await dedicated(lab)
            wanted = {"project_id": IDENTITY.project_id, "nni_vlan": 100, "vnid": (await vlan(lab))["id"]}
            circuit = await posted(lab, f"{port}/virtual-circuits", wanted)
            before = await shown(lab, connection)
        async with world(tmp_path) as lab:
            assert (await shown(lab, circuit["href"]))["status"] == "activating"
            lab.elapse(5)
            after = await shown(lab, connection)
            assert after["ports"][0]["virtual_circuits"][0]["status"] == "active"
            assert {**after, "ports": []} == {**before, "ports": []}

    asyncio.run(run())
