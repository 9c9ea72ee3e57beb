"""Ports of devices: bonds, layers, VLANs on them, and what follows for documents and metadata."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lab.metal_api.exceptions import NotFound
from lab.metal_api.ips.models import Assignment
from lab.metal_api.ports import batches
from tests.lab.metal_api.harness import PROJECT, World, world
from tests.lab.metal_api.judging import judged

BASE = "/metal/v1"


class Ports:
    """The ports of one device, by name, and some VLANs."""

    def __init__(self, lab: World, device: dict[str, Any]) -> None:
        self.lab = lab
        self.device_id = device["id"]
        self._hrefs = {port["name"]: port["href"] for port in device["network_ports"]}

    async def post(self, name: str, action: str, body: Any = None, *, status: int = 200) -> Any:
        answer = await self.lab.client.post(f"{self._hrefs[name]}/{action}", json=body or {})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def refused(self, name: str, action: str, body: Any = None) -> str:
        (error,) = (await self.post(name, action, body, status=422))["errors"]
        return error

    async def port(self, name: str, **query: str) -> dict[str, Any]:
        return (await self.lab.client.get(self._hrefs[name], params=query)).json()

    async def network_type(self) -> str:
        return (await self.port("bond0"))["network_type"]

    async def vlans(self, name: str) -> list[str]:
        return [entry["href"].rpartition("/")[2] for entry in (await self.port(name))["virtual_networks"]]

    async def vlan(self, **body: Any) -> str:
        answer = await self.lab.client.post(f"{PROJECT}/virtual-networks", json={"metro": "lb", **body})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def batch(self, name: str, *wanted: dict[str, Any]) -> dict[str, Any]:
        return await self.post(name, "vlan-assignments/batches", {"vlan_assignments": list(wanted)}, status=201)


async def ports_of(lab: World) -> Ports:
    """The ports of a new device, with every answer compared to the description."""
    judged(lab)
    answer = await lab.order()
    return Ports(lab, answer)


def test_every_device_starts_bonded_in_layer_3(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            bond, *rest = (await lab.device(ports.device_id))["network_ports"]
            assert (bond["name"], bond["type"], bond["network_type"]) == ("bond0", "NetworkBondPort", "layer3")
            assert bond["data"] == {"bonded": True}
            assert [port["name"] for port in rest] == ["eth0", "eth1"]
            for port in rest:
                assert (port["type"], port["data"]["bonded"]) == ("NetworkPort", True)
                assert port["bond"] == {"id": bond["id"], "name": "bond0"}
            assert len({port["data"]["mac"] for port in rest}) == 2
            assert await ports.port("bond0") == bond
            assert (await lab.client.get(f"{BASE}/ports/{ports.device_id}")).status_code == 404
            assert (await lab.client.get(f"{BASE}/ports/x")).status_code == 404

    asyncio.run(run())


def test_layer_2_takes_the_addresses_and_layer_3_gives_them_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            before = (await lab.device(ports.device_id))["ip_addresses"]
            asked = {"type": "public_ipv4", "quantity": 1, "metro": "lb"}
            block = (await lab.client.post(f"{PROJECT}/ips", json=asked)).json()
            elastic = f"{block['address']}/32"
            device = f"{BASE}/devices/{ports.device_id}"
            assert (await lab.client.post(f"{device}/ips", json={"address": elastic})).status_code == 201
            assert (await ports.post("bond0", "convert/layer-2"))["network_type"] == "layer2-bonded"
            assert (await lab.device(ports.device_id))["ip_addresses"] == []
            assert not lab.account.table(Assignment)
            refused = await lab.client.post(f"{device}/ips", json={"address": elastic})
            assert (refused.status_code, refused.json()["errors"]) == (422, ["Device has no layer 3 network"])
            own = {entry["address"] for entry in before}
            listed = (await lab.client.get(f"{PROJECT}/ips")).json()["ip_addresses"]
            assert [entry["id"] for entry in listed] == [block["id"]]
            other = await lab.order()
            assert own.isdisjoint(entry["address"] for entry in other["ip_addresses"])
            both = [{"address_family": 4, "public": public} for public in (True, False)]
            back = await ports.post("bond0", "convert/layer-3", {"request_ips": both})
            assert back["network_type"] == "layer3"
            assert (await lab.device(ports.device_id))["ip_addresses"] == before

    asyncio.run(run())


def test_layer_3_can_come_back_without_public_addresses(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            await ports.post("bond0", "convert/layer-2")
            wanted = {"request_ips": [{"address_family": 4, "public": True}, {"address_family": 6, "public": True}]}
            assert await ports.refused("bond0", "convert/layer-3", wanted) == "Private IPv4 address is required"
            assert await ports.network_type() == "layer2-bonded"
            private = {"request_ips": [{"address_family": 4, "public": False}]}
            await ports.post("bond0", "convert/layer-3", private)
            (address,) = (await lab.device(ports.device_id))["ip_addresses"]
            assert address["public"] is False

    asyncio.run(run())


def test_conversions_that_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            vlan = await ports.vlan()
            assert await ports.refused("bond0", "convert/layer-3") == "Port bond0 is already in layer 3"
            assert await ports.refused("eth0", "convert/layer-2") == "Port eth0 is not a bond port"
            await ports.post("bond0", "convert/layer-2", {"vnid": vlan})
            assert await ports.refused("bond0", "convert/layer-2") == "Port bond0 is already in layer 2"
            assert "Please unassign them" in await ports.refused("bond0", "convert/layer-3")
            await ports.post("bond0", "unassign", {"vnid": vlan})
            await ports.post("bond0", "disbond")
            assert "Please bond it first" in await ports.refused("bond0", "convert/layer-3")
            await lab.client.put(f"{BASE}/devices/{ports.device_id}", json={"network_frozen": True})
            assert "frozen" in await ports.refused("bond0", "bond")

    asyncio.run(run())


def test_an_unknown_vlan_converts_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            assert "1000 is not in this project" in await ports.refused("bond0", "convert/layer-2", {"vnid": "1000"})
            assert await ports.network_type() == "layer3"

    asyncio.run(run())


def test_the_bond_and_its_members(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            out = await ports.post("eth1", "disbond")
            assert out["data"]["bonded"] is False
            assert "bond" not in out
            assert await ports.network_type() == "hybrid"
            assert (await ports.refused("eth0", "disbond")) == (
                "Port eth0 is the last member of bond0 and cannot be removed from it"
            )
            vlan = await ports.vlan()
            await ports.post("eth1", "assign", {"vnid": vlan})
            assert "Please unassign them first" in await ports.refused("eth1", "bond")
            await ports.post("eth1", "unassign", {"vnid": vlan})
            await ports.post("eth1", "bond")
            assert await ports.network_type() == "layer3"
            assert (await ports.post("eth1", "bond"))["data"]["bonded"] is True, "asked again, it is no error"

    asyncio.run(run())


def test_individual_ports_as_the_provider_asks_for_them(tmp_path: Path) -> None:
    """The order of its `metal_port`: the bond goes before the layer, and comes back before it."""

    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            assert (await ports.post("bond0", "disbond", {"bulk_disable": False}))["data"] == {"bonded": False}
            assert await ports.network_type() not in ("layer2-individual", "layer2-bonded")
            await ports.post("bond0", "convert/layer-2")
            assert await ports.network_type() == "layer2-individual"
            assert [(await ports.port(name))["data"]["bonded"] for name in ("eth0", "eth1")] == [False, False]
            await ports.post("bond0", "bond", {"bulk_enable": False})
            assert await ports.network_type() == "layer2-bonded"
            await ports.post("bond0", "convert/layer-3")
            assert await ports.network_type() == "layer3"

    asyncio.run(run())


@pytest.mark.parametrize("how", ["query", "body"])
def test_both_ports_at_once(tmp_path: Path, how: str) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            query, body = ("?bulk_disable=true", None) if how == "query" else ("", {"bulk_disable": True})
            await ports.post("eth0", f"disbond{query}", body)
            assert (await ports.port("eth1"))["data"]["bonded"] is False
            query, body = ("?bulk_enable=true", None) if how == "query" else ("", {"bulk_enable": True})
            await ports.post("eth1", f"bond{query}", body)
            assert (await ports.port("eth0"))["data"]["bonded"] is True

    asyncio.run(run())


def test_vlans_on_ports(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            vlan, elsewhere = await ports.vlan(), await ports.vlan(metro="da", vxlan=2000)
            assert "not in this project and in lb" in await ports.refused("bond0", "assign", {"vnid": elsewhere})
            assert "eth0 is a member of bond0" in await ports.refused("eth0", "assign", {"vnid": vlan})
            assert await ports.refused("bond0", "unassign", {"vnid": vlan}) == f"Virtual network {vlan} not assigned"
            shown = await ports.post("bond0", "assign", {"vnid": "1000"})
            assert (shown["network_type"], len(shown["virtual_networks"])) == ("hybrid-bonded", 1)
            assert "already assigned" in await ports.refused("bond0", "assign", {"vnid": vlan})
            assert len((await lab.device(ports.device_id))["ip_addresses"]) == 2, "hybrid keeps them"
            included = await ports.port("bond0", include="virtual_networks")
            assert [entry["vxlan"] for entry in included["virtual_networks"]] == [1000]
            query = {"include": "virtual_networks,native_virtual_network,project"}
            device = (await lab.client.get(f"{BASE}/devices/{ports.device_id}", params=query)).json()
            assert [entry["vxlan"] for entry in device["network_ports"][0]["virtual_networks"]] == [1000]
            assert "bond0 has virtual networks" in await ports.refused("bond0", "disbond")
            assert "Please unassign" in (await lab.client.delete(f"{BASE}/virtual-networks/{vlan}")).text

    asyncio.run(run())


def test_native_vlans(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            first, second = await ports.vlan(), await ports.vlan()
            await ports.post("eth1", "disbond")
            await ports.post("eth1", "assign", {"vnid": first})
            assert "more than one" in await ports.refused("eth1", "native-vlan", {"vnid": first})
            assert await ports.refused("eth1", f"native-vlan?vnid={second}") == f"Virtual network {second} not assigned"
            await ports.post("eth1", "assign", {"vnid": second})
            for vnid in (first, second):
                shown = await ports.post("eth1", f"native-vlan?vnid={vnid}")
                assert shown["native_virtual_network"]["href"].endswith(vnid)
            assert "native VLAN of port eth1" in await ports.refused("eth1", "unassign", {"vnid": second})
            assert (await lab.client.delete(f"{shown['href']}/native-vlan")).status_code == 200
            assert "native_virtual_network" not in await ports.port("eth1")
            assert (await lab.client.delete(f"{shown['href']}/native-vlan")).status_code == 422

    asyncio.run(run())


def test_a_bond_in_layer_3_has_no_native_vlan(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            vlans = [await ports.vlan(), await ports.vlan()]
            for vlan in vlans:
                await ports.post("bond0", "assign", {"vnid": vlan})
            assert "in layer 3" in await ports.refused("bond0", "native-vlan", {"vnid": vlans[0]})
            await ports.post("bond0", "convert/layer-2")
            await ports.post("bond0", "native-vlan", {"vnid": vlans[0]})

    asyncio.run(run())


def test_batches_are_carried_out_a_little_later(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            first, second = await ports.vlan(), await ports.vlan()
            await ports.post("bond0", "assign", {"vnid": first})
            wanted = [{"vlan": "1000", "state": "unassigned"}, {"vlan": second, "state": "assigned", "native": False}]
            batch = await ports.batch("bond0", *wanted)
            assert (batch["state"], batch["quantity"]) == ("queued", 2)
            href = f"{(await ports.port('bond0'))['href']}/vlan-assignments/batches"
            assert (await lab.client.get(f"{href}/{batch['id']}")).json()["state"] == "in_progress"
            assert [e["href"] for e in (await ports.port("bond0"))["virtual_networks"]] == [
                f"{BASE}/virtual-networks/{first}"
            ]
            lab.elapse(1)
            done = (await lab.client.get(f"{href}/{batch['id']}")).json()
            assert (done["state"], done["error_messages"]) == ("completed", [])
            assert [(entry["vlan"], entry["state"]) for entry in done["vlan_assignments"]] == [
                (1000, "unassigned"),
                (1001, "assigned"),
            ]
            assert [e["href"] for e in (await ports.port("bond0"))["virtual_networks"]] == [
                f"{BASE}/virtual-networks/{second}"
            ]
            assert [entry["id"] for entry in (await lab.client.get(href)).json()["batches"]] == [batch["id"]]

    asyncio.run(run())


def test_a_batch_that_fails_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            first, second = await ports.vlan(), await ports.vlan()
            await ports.post("bond0", "assign", {"vnid": first})
            unknown = {"vlan_assignments": [{"vlan": "7"}]}
            assert "7 is not in this project" in await ports.refused("bond0", "vlan-assignments/batches", unknown)
            wanted = [{"vlan": first, "state": "unassigned"}, {"vlan": second, "native": True}]
            batch = await ports.batch("bond0", *wanted)
            lab.elapse(1)
            href = f"{(await ports.port('bond0'))['href']}/vlan-assignments"
            done = (await lab.client.get(f"{href}/batches/{batch['id']}")).json()
            assert done["state"] == "failed"
            assert "more than one virtual network" in done["error_messages"][0]
            assert await ports.vlans("bond0") == [first]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "told"),
    [(NotFound("Gone"), "Gone"), (KeyError("nothing"), "Internal error: KeyError: 'nothing'")],
)
def test_what_a_batch_meets_is_told_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    """And not answered to whoever asks for something else when it is due."""

    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            first, second = await ports.vlan(), await ports.vlan()
            batch = await ports.batch("bond0", {"vlan": first}, {"vlan": second, "native": True})

            def refuse(*arguments: object) -> None:
                raise error

            monkeypatch.setattr(batches, "set_native", refuse)
            lab.elapse(1)
            assert (await lab.client.get(f"{BASE}/devices/{ports.device_id}")).status_code == 200
            href = f"{(await ports.port('bond0'))['href']}/vlan-assignments"
            done = (await lab.client.get(f"{href}/batches/{batch['id']}")).json()
            assert (done["state"], done["error_messages"]) == ("failed", [told])
            assert await ports.vlans("bond0") == []

    asyncio.run(run())


def test_what_was_queued_is_carried_out_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            vlan = await ports.vlan()
            await ports.post("eth1", "disbond")
            batch = await ports.batch("eth1", {"vlan": "1000"})
        async with world(tmp_path) as lab:
            again = Ports(lab, await lab.device(ports.device_id))
            assert await again.network_type() == "hybrid"
            lab.elapse(1)
            href = f"{(await again.port('eth1'))['href']}/vlan-assignments"
            assert (await lab.client.get(f"{href}/batches/{batch['id']}")).json()["state"] == "completed"
            assert await again.vlans("eth1") == [vlan]

    asyncio.run(run())


def test_metadata_follows(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            address = lab.devices[ports.device_id].public_ipv4

            async def network() -> dict[str, Any]:
                async with lab.machine(address) as machine:
                    return (await machine.get("/metadata")).json()["network"]

            before = await network()
            assert [entry["bond"] for entry in before["interfaces"]] == ["bond0", "bond0"]
            assert (before["bonding"]["link_aggregation"], before["bonding"]["mode"]) == ("bonded", 5)
            await ports.post("eth1", "disbond")
            hybrid = await network()
            assert [entry["bond"] for entry in hybrid["interfaces"]] == ["bond0", None]
            assert hybrid["addresses"] == before["addresses"]
            await ports.post("bond0", "convert/layer-2")
            await ports.post("bond0", "disbond")
            without = await network()
            assert without["addresses"] == []
            assert without["bonding"]["link_aggregation"] == "individual"
            assert [entry["name"] for entry in without["interfaces"]] == ["eth0", "eth1"]

    asyncio.run(run())


def test_the_router_speaks_to_no_device_without_layer_3(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as lab:
            ports = await ports_of(lab)
            await lab.client.post(f"{PROJECT}/bgp-configs", json={"deployment_type": "local", "asn": 65000})
            device = f"{BASE}/devices/{ports.device_id}"
            assert (await lab.client.post(f"{device}/bgp/sessions", json={"address_family": "ipv4"})).status_code == 201
            assert len(lab.router.told[-1].peers) == 1
            await ports.post("bond0", "convert/layer-2")
            assert lab.router.told[-1].peers == ()
            await ports.post("bond0", "convert/layer-3")
            assert len(lab.router.told[-1].peers) == 1

    asyncio.run(run())
