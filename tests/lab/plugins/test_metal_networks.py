"""Virtual networks, ports, gateways: what is asked for, kept, and taken for a difference.

States and differences are what the official plug-in answered on the same API.
"""

from __future__ import annotations

from typing import Any

import pytest

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal import client, ports, vlan
from lab.plugins.values import UNKNOWN, plain_map
from tests.lab.plugins.fake_metal import PROJECT, Fault
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import Driver, run
from tests.lab.plugins.test_metal_faults import clocks
from tests.lab.plugins.test_metal_resources import driver, metal

__all__ = ["metal"]

Json = dict[str, Any]
TIMEOUTS = (
    '{"e2bfb730-ecaa-11e6-8f88-34363bc7c4c0":{"create":1200000000000,"delete":1200000000000,"update":1200000000000}}'
)
VLAN: Json = {"projectId": PROJECT, "metro": "LB", "description": "d"}


def token(kind: str) -> str:
    return f"equinix-metal:index/{kind[0].lower()}{kind[1:]}:{kind}"


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vlan, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(ports, "FIRST_POLL_SECONDS", 0.01)
    monkeypatch.setattr(ports, "LONGEST_POLL_SECONDS", 0.01)


async def made(kind: str, given: Json) -> tuple[Driver, str, Json, Json]:
    """A new one: its driver, id, state and inputs; with what it was made as, it shows no difference."""
    resource = await driver(token(kind))
    inputs = await resource.inputs(given)
    identifier, state = await resource.create(inputs)
    kept = plain_map(state)
    assert await resource.diff(kept, inputs) == {}
    return resource, identifier, kept, inputs


async def network(vxlan: int) -> str:
    _, identifier, _, _ = await made("Vlan", {"projectId": PROJECT, "metro": "lb", "vxlan": vxlan})
    return identifier


def test_a_virtual_network_lives_its_life(metal: FakePlatform) -> None:
    async def scenario() -> None:
        resource, identifier, kept, inputs = await made("Vlan", VLAN)
        assert metal.requests == [
            (
                "POST",
                f"/metal/v1/projects/{PROJECT}/virtual-networks",
                {"project_id": PROJECT, "description": "d", "metro": "lb"},
            )
        ]
        expected: Json = {**VLAN, "id": identifier, "metro": "lb", "facility": "", "vxlan": 1000}
        assert kept == expected
        assert await resource.read(identifier, kept, inputs) == (identifier, expected, inputs)
        _, _, imported = await resource.read(identifier, {}, {})
        assert imported == {**VLAN, "metro": "lb", "vxlan": 1000, "__defaults": []}
        await resource.delete(identifier, kept)
        await resource.delete(identifier, kept)
        assert await resource.read(identifier, kept, inputs) == ("", {}, {})

    run(scenario())


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"metro": "lb"}, {}),
        ({"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
        ({"metro": None}, {"metro": "DELETE_REPLACE"}),
        ({"description": None}, {"description": "DELETE_REPLACE"}),
        ({"vxlan": 1000}, {}),
        ({"vxlan": 7}, {"vxlan": "UPDATE_REPLACE"}),
        ({"facility": "lab1"}, {"facility": "UPDATE_REPLACE"}),
        ({"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ],
)
def test_every_change_of_a_network_replaces_it(metal: FakePlatform, change: Json, found: dict[str, str]) -> None:
    async def scenario() -> None:
        resource, _, kept, inputs = await made("Vlan", VLAN)
        wanted = {name: value for name, value in {**inputs, **change}.items() if value is not None}
        assert await resource.diff(kept, wanted) == found

    run(scenario())


def test_a_network_that_is_in_use_is_freed_and_removed(metal: FakePlatform) -> None:
    async def scenario() -> None:
        resource, identifier, kept, _ = await made("Vlan", {**VLAN, "vxlan": 1001})
        bond, _ = metal.add_ports()
        bond["virtual_networks"] = [metal.records["virtual-networks"][identifier]]
        metal.records["virtual-networks"][identifier]["instances"] = list(metal.devices.values())
        metal.faults.append(Fault("DELETE", identifier, "status", status=422))
        # What the API shows of the network shows the network: no answer could hold that.
        bond["virtual_networks"] = [{"id": identifier, "vxlan": 1001}]
        await resource.delete(identifier, kept)
        assert bond["virtual_networks"] == []
        assert metal.records["virtual-networks"] == {}

    run(scenario())


@pytest.mark.parametrize(("kind", "after"), [("status", True), ("status", False), ("reset", True), ("half", True)])
@pytest.mark.parametrize(
    ("resource", "suffix"),
    [("Vlan", "/virtual-networks"), ("Gateway", "/metal-gateways")],
)
def test_orders_whose_outcome_is_unknown_are_looked_for(
    metal: FakePlatform, resource: str, suffix: str, kind: str, after: bool
) -> None:
    clocks(metal)
    given: dict[str, Json] = {
        "Vlan": VLAN,
        "Gateway": {"projectId": PROJECT, "vlanId": "v", "privateIpv4SubnetSize": 16},
    }
    metal.faults.append(Fault("POST", suffix, kind, after=after))
    _, identifier, _, _ = run(made(resource, given[resource]))
    assert list(metal.records[suffix[1:]]) == [identifier]
    assert metal.count("POST", suffix) == (1 if after else 2)


def test_a_network_that_nothing_tells_from_others_is_not_ordered_blindly(metal: FakePlatform) -> None:
    metal.faults.append(Fault("POST", "/virtual-networks", "status"))
    with pytest.raises(PluginError, match="a virtual network without vxlan and description cannot be looked for"):
        run(made("Vlan", {"projectId": PROJECT, "metro": "lb"}))
    assert metal.count("POST", "/virtual-networks") == 1


@pytest.mark.parametrize(
    ("kind", "given", "wrong"),
    [
        ("Vlan", {"projectId": PROJECT}, {"metro"}),
        ("Vlan", {**VLAN, "facility": "lab1"}, {"facility"}),
        ("Vlan", {"projectId": PROJECT, "facility": "lab1", "vxlan": 7}, {"vxlan"}),
        ("Gateway", {"projectId": PROJECT, "vlanId": "v"}, {"ipReservationId"}),
        ("Gateway", {"projectId": PROJECT, "vlanId": "v", "privateIpv4SubnetSize": 7}, {"privateIpv4SubnetSize"}),
        (
            "Gateway",
            {"projectId": PROJECT, "vlanId": "v", "privateIpv4SubnetSize": 8, "ipReservationId": "i"},
            {"privateIpv4SubnetSize"},
        ),
        ("Port", {"portId": "p"}, {"bonded"}),
        ("Port", {"portId": "p", "bonded": True, "vlanIds": ["v"], "vxlanIds": [7]}, {"vxlanIds"}),
        ("Port", {"portId": "p", "bonded": True, "vlanIds": ["v"], "nativeVlanId": "v"}, {"nativeVlanId"}),
    ],
)
def test_wrong_inputs_are_refused(kind: str, given: Json, wrong: set[str]) -> None:
    async def scenario() -> None:
        _, failures = await (await driver(token(kind))).check(given)
        assert set(failures) == wrong

    run(scenario())


def test_a_gateway_has_a_block_of_its_own_or_one_that_is_there(metal: FakePlatform) -> None:
    async def scenario() -> None:
        given: Json = {"projectId": PROJECT, "vlanId": "v", "privateIpv4SubnetSize": 16}
        gateway, identifier, kept, inputs = await made("Gateway", given)
        assert metal.requests[-1][2] == {"virtual_network_id": "v", "private_ipv4_subnet_size": 16}
        assert kept == {**given, "id": identifier, "ipReservationId": "made", "state": "ready"}
        assert await gateway.diff(kept, {**inputs, "vlanId": "w"}) == {"vlanId": "UPDATE_REPLACE"}
        assert await gateway.read(identifier, kept, inputs) == (identifier, kept, inputs)
        given = {"projectId": PROJECT, "vlanId": "v", "ipReservationId": "block"}
        _, identifier, kept, _ = await made("Gateway", given)
        assert kept == {**given, "id": identifier, "privateIpv4SubnetSize": 0, "state": "ready"}
        await gateway.delete(identifier, kept)
        await gateway.delete(identifier, kept)
        assert await gateway.read(identifier, kept, inputs) == ("", {}, {})

    run(scenario())


def test_a_bond_gets_networks_in_one_go(metal: FakePlatform) -> None:
    async def scenario() -> None:
        one, two, three = await network(1001), await network(1002), await network(1003)
        bond, _ = metal.add_ports()
        metal.requests.clear()
        given: Json = {"portId": bond["id"], "bonded": True, "vlanIds": [one, two]}
        port, identifier, kept, inputs = await made("Port", given)
        path = f"/metal/v1/ports/{bond['id']}"
        asked = metal.requests[1][2]["vlan_assignments"]
        assert [(method, where.removeprefix(path).split("batches")[0]) for method, where, _ in metal.requests] == [
            ("GET", ""),
            ("POST", "/vlan-assignments/"),
            ("GET", "/vlan-assignments/"),
            ("GET", ""),
        ]
        assert sorted(asked, key=str) == sorted(({"vlan": it, "state": "assigned"} for it in (one, two)), key=str)
        assert {name: value for name, value in kept.items() if name not in ("vlanIds", "vxlanIds")} == {
            "__meta": TIMEOUTS,
            "id": bond["id"],
            "portId": bond["id"],
            "bonded": True,
            "layer2": False,
            "name": "bond0",
            "type": "NetworkBondPort",
            "networkType": "layer3",
            "mac": "52:54:00:00:00:01",
            "disbondSupported": True,
        }
        assert (sorted(kept["vlanIds"]), kept["vxlanIds"]) == (sorted([one, two]), [1002, 1001])
        assert await port.diff(kept, {**inputs, "vlanIds": [two, one]}) == {}
        assert await port.diff(kept, {name: it for name, it in inputs.items() if name != "vlanIds"}) == {}
        more = kept["vlanIds"] + [three]
        assert await port.diff(kept, {**inputs, "vlanIds": more}) == {"vlanIds[2]": "ADD"}
        assert await port.diff(kept, {**inputs, "vlanIds": kept["vlanIds"][1:]}) == {"vlanIds[0]": "DELETE"}
        assert await port.diff(kept, {**inputs, "layer2": True}) == {"layer2": "UPDATE"}
        assert await port.diff(kept, {**inputs, "portId": "x"}) == {"portId": "UPDATE_REPLACE"}
        again = await port.update(identifier, kept, {**inputs, "vlanIds": [two, three]})
        assert again["vxlanIds"] == [1003, 1002]
        spoken_of_no_more = {name: it for name, it in inputs.items() if name != "vlanIds"}
        assert (await port.update(identifier, again, spoken_of_no_more))["vxlanIds"] == [1003, 1002]
        await port.delete(identifier, again)
        assert [each["vxlan"] for each in bond["virtual_networks"]] == [1002, 1003]

    run(scenario())


def test_a_bond_goes_to_layer_2_and_back(metal: FakePlatform) -> None:
    async def scenario() -> None:
        await network(1001)
        bond, _ = metal.add_ports()
        given: Json = {"portId": bond["id"], "bonded": True, "layer2": True, "vxlanIds": [1001], "resetOnDelete": True}
        port, identifier, kept, inputs = await made("Port", given)
        assert (kept["networkType"], kept["layer2"], kept["vxlanIds"]) == ("layer2-bonded", True, [1001])
        assert await port.diff(kept, {**inputs, "layer2": False}) == {"layer2": "UPDATE"}
        await port.delete(identifier, kept)
        await port.delete(identifier, kept)
        assert (bond["network_type"], bond["virtual_networks"]) == ("layer3", [])
        asked = [body for _, where, body in metal.requests if where.endswith("layer-3")]
        assert asked == [{"request_ips": list(ports.LAYER_3_ADDRESSES)}]
        metal.devices.clear()
        await port.delete(identifier, kept)
        assert (await port.read(identifier, kept, inputs))[0] == ""

    run(scenario())


def test_a_port_outside_its_bond_has_a_native_network(metal: FakePlatform) -> None:
    async def scenario() -> None:
        one, two = await network(1001), await network(1002)
        bond, eth1 = metal.add_ports()
        given: Json = {"portId": eth1["id"], "bonded": False, "vlanIds": [one, two], "nativeVlanId": one}
        port, identifier, kept, inputs = await made("Port", given)
        assert (kept["bonded"], kept["nativeVlanId"], kept["bondId"]) == (False, one, bond["id"])
        assert (kept["networkType"], "layer2" in kept) == ("", False)
        assert await port.diff(kept, {**inputs, "nativeVlanId": two}) == {"nativeVlanId": "UPDATE"}
        kept = await port.update(identifier, kept, {**inputs, "nativeVlanId": two})
        assert (kept["nativeVlanId"], eth1["native_virtual_network"]["id"]) == (two, two)
        fewer = {name: it for name, it in inputs.items() if name != "nativeVlanId"}
        kept = await port.update(identifier, kept, fewer)
        assert "nativeVlanId" not in kept
        assert await port.diff(kept, fewer) == {}

    run(scenario())


@pytest.mark.parametrize(
    ("which", "given", "wrong"),
    [
        (1, {"bonded": True, "layer2": True}, "layer2 is only for bond ports, not for eth1"),
        (0, {"bonded": False}, "bond0 cannot be unbonded in layer 3"),
        (0, {"bonded": True, "vlanIds": ["v", "w"], "nativeVlanId": "v"}, "nativeVlanId is not for bond ports"),
    ],
)
def test_what_a_port_cannot_be_is_refused_before_it_is_touched(
    metal: FakePlatform, which: int, given: Json, wrong: str
) -> None:
    port = metal.add_ports()[which]
    with pytest.raises(PluginError, match=wrong):
        run(made("Port", {"portId": port["id"], **given}))
    assert [method for method, _, _ in metal.requests] == ["GET"]


def test_a_batch_that_fails_says_why_and_one_that_is_late_is_told(metal: FakePlatform) -> None:
    async def scenario() -> None:
        one = await network(1001)
        bond, _ = metal.add_ports()
        given: Json = {"portId": bond["id"], "bonded": True, "vlanIds": [one]}
        metal.batch_end = {"state": "failed", "error_messages": ["no", "way"]}
        with pytest.raises(PluginError, match="failed: no; way"):
            await made("Port", given)
        metal.batch_polls = 10**6
        port = await driver(token("Port"))
        with pytest.raises(PluginError, match="is still queued after 0 s"):
            await port.create(given, timeout=0.05)

    run(scenario())


@pytest.mark.parametrize(("kind", "after"), [("status", True), ("status", False), ("reset", True), ("half", True)])
@pytest.mark.parametrize("suffix", ["/batches", "/convert/layer-2"])
def test_actions_at_ports_are_done_once(metal: FakePlatform, suffix: str, kind: str, after: bool) -> None:
    clocks(metal)

    async def scenario() -> None:
        one = await network(1001)
        bond, _ = metal.add_ports()
        metal.faults.append(Fault("POST", suffix, kind, after=after))
        _, _, kept, _ = await made("Port", {"portId": bond["id"], "bonded": True, "layer2": True, "vlanIds": [one]})
        assert (kept["networkType"], kept["vlanIds"]) == ("layer2-bonded", [one])

    run(scenario())
    assert metal.count("POST", suffix) == (1 if after else 2)
