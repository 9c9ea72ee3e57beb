"""Functions: what they find, what they refuse, and that they know the arguments and results of the official SDK."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.provider.experimental import provider as api

from lab.plugins.base import PluginError
from lab.plugins.values import plain_map, wrap_map
from tests.lab.plugins.fake_metal import BASE, ORGANIZATION, PROJECT
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import run
from tests.lab.plugins.test_metal_accounts import SPOT, quick_spot
from tests.lab.plugins.test_metal_networks import CONNECTION, VLAN, made
from tests.lab.plugins.test_metal_resources import DEVICE, driver, metal

__all__ = ["metal", "quick_spot"]

Json = dict[str, Any]


async def asked(name: str, /, **arguments: Any) -> Json:
    """What a function answers."""
    plugin = (await driver(DEVICE)).plugin
    response = await plugin.invoke(api.InvokeRequest(f"equinix-metal:index/{name}:{name}", wrap_map(arguments)))
    assert not response.failures, [failure.reason for failure in response.failures or []]
    assert not any(value.is_secret for value in (response.return_value or {}).values())
    return plain_map(response.return_value or {})


PLACES: list[tuple[str, Json, Json]] = [
    ("getMetro", {"code": "lb"}, {"id": "m", "name": "Lab", "country": "NL"}),
    (
        "getFacility",
        {"code": "lab1", "featuresRequireds": ["layer_2"], "capacities": [{"plan": "p", "quantity": 2}]},
        {"id": "f", "name": "Lab 1", "metro": "lb", "features": ["baremetal", "layer_2"]},
    ),
    (
        "getOperatingSystem",
        {"name": "debian", "provisionableOn": "p"},
        {"id": "debian_12", "slug": "debian_12", "name": "Debian 12", "distro": "debian", "version": "12"},
    ),
    ("getSpotMarketPrice", {"metro": "LB", "plan": "c3.small.x86"}, {"metro": "lb", "price": 0.2}),
    ("getSpotMarketPrice", {"facility": "lab1", "plan": "c3.small.x86"}, {"price": 0.3}),
    (
        "getHardwareReservation",
        {"id": "r"},
        {
            "shortId": "r0",
            "projectId": PROJECT,
            "deviceId": "d",
            "plan": "c3.small.x86",
            "facility": "lab1",
            "provisionable": True,
            "spare": False,
            "switchUuid": "s",
        },
    ),
]


@pytest.mark.parametrize(("name", "arguments", "found"), PLACES)
def test_what_is_always_there(metal: FakePlatform, name: str, arguments: Json, found: Json) -> None:
    answer = run(asked(name, **arguments))
    if name == "getSpotMarketPrice":
        place = next(f"{kind}-{str(it).lower()}" for kind, it in arguments.items() if kind != "plan")
        found = {"id": f"{place}-c3.small.x86", **found}
    assert answer == {**arguments, **found}


def test_a_capacity_has_a_quantity_of_one(metal: FakePlatform) -> None:
    assert run(asked("getMetro", code="lb", capacities=[{"plan": "p"}]))["capacities"] == [{"plan": "p", "quantity": 1}]
    assert metal.requests[0][1:] == (
        "/metal/v1/capacity/metros",
        {"servers": [{"metro": "lb", "plan": "p", "quantity": 1}]},
    )


MISSING: list[tuple[str, Json, str]] = [
    ("getMetro", {"code": "xx"}, "metro xx: there is none"),
    ("getMetro", {"code": "lb", "capacities": [{"plan": "p", "quantity": 20}]}, "metro lb has no capacity for 20 of p"),
    ("getFacility", {"code": "lab1", "featuresRequireds": ["ibx"]}, "facility lab1 does not have ibx, only baremetal"),
    ("getOperatingSystem", {"distro": "debian"}, "operating system with distro debian: there are 2, not one"),
    ("getSpotMarketPrice", {"metro": "lb", "plan": "p"}, "p has no price at the spot market in metro lb"),
    ("getDevice", {"deviceId": "nobody"}, r"GET /devices/nobody: 404 .*: refresh, then go on"),
    ("getDevice", {"hostname": "nobody", "projectId": PROJECT}, "device nobody in project .*: there is none"),
    ("getVlan", {"projectId": PROJECT, "vxlan": 7}, "virtual network of project .*: there is none"),
    ("getReservedIpBlock", {"projectId": PROJECT, "ipAddress": "192.0.2.1"}, "has reserved no block with 192.0.2.1"),
    (
        "getPrecreatedIpBlock",
        {"projectId": PROJECT, "addressFamily": 6, "public": True, "metro": "lb"},
        "has no block of public IPv6 addresses in metro lb",
    ),
    ("getProjectSshKey", {"projectId": PROJECT, "id": "k"}, "has no SSH key k"),
    ("getProject", {"name": "nobody"}, "project nobody: there is none"),
]


@pytest.mark.parametrize(("name", "arguments", "told"), MISSING)
def test_what_is_not_there_is_told(metal: FakePlatform, name: str, arguments: Json, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        run(asked(name, **arguments))


WRONG: list[tuple[str, Json, set[str]]] = [
    ("getMetro", {}, {"code"}),
    ("getMetro", {"code": "lb", "capacity": []}, {"capacity"}),
    ("getOperatingSystem", {}, {"name"}),
    ("getSpotMarketPrice", {"plan": "p"}, {"metro"}),
    ("getSpotMarketPrice", {"plan": "p", "metro": "lb", "facility": "lab1"}, {"facility"}),
    ("getDevice", {}, {"deviceId"}),
    ("getDevice", {"hostname": "h"}, {"projectId"}),
    ("getDevice", {"hostname": "h", "deviceId": "d"}, {"hostname"}),
    ("getPort", {"name": "eth0"}, {"portId"}),
    ("getPort", {"portId": "p", "name": "eth0"}, {"name"}),
    ("getHardwareReservation", {}, {"id"}),
    ("getOrganization", {"name": "n", "organizationId": "o"}, {"name"}),
    ("getProjectSshKey", {"projectId": "p"}, {"id"}),
    ("getVlan", {"vxlan": 7}, {"vlanId"}),
    ("getVlan", {"vlanId": "v", "metro": "lb"}, {"metro"}),
    ("getReservedIpBlock", {"projectId": "p"}, {"id"}),
    ("getReservedIpBlock", {"projectId": "p", "ipAddress": "x"}, {"ipAddress"}),
    ("getPrecreatedIpBlock", {"projectId": "p", "addressFamily": 4, "public": False, "global": True}, {"global"}),
]


@pytest.mark.parametrize(("name", "arguments", "wrong"), WRONG)
def test_wrong_arguments_are_refused_without_a_request(
    metal: FakePlatform, name: str, arguments: Json, wrong: set[str]
) -> None:
    async def scenario() -> set[str]:
        plugin = (await driver(DEVICE)).plugin
        token = f"equinix-metal:index/{name}:{name}"
        response = await plugin.invoke(api.InvokeRequest(token, wrap_map(arguments)))
        return {failure.property for failure in response.failures or []}

    assert run(scenario()) == wrong
    assert metal.requests == []


def test_devices_are_found_by_id_and_by_name(metal: FakePlatform) -> None:
    device = metal.add_device(hostname="h", state="active", polls=99, hardware_reservation={"id": "r"})

    async def scenario() -> None:
        found = await asked("getDevice", deviceId=device["id"])
        assert found == {**(await asked("getDevice", hostname="h", projectId=PROJECT))}
        told = {name: found[name] for name in ("facility", "metro", "plan", "state", "hardwareReservationId")}
        assert told == {
            "facility": "lab1",
            "metro": "lb",
            "plan": "c3.small.x86",
            "state": "active",
            "hardwareReservationId": "r",
        }
        assert (found["accessPublicIpv4"], found["rootPassword"]) == ("198.51.100.1", "hunter2-root")
        assert (await asked("getHardwareReservation", deviceId=device["id"]))["deviceId"] == device["id"]
        metal.add_device(hostname="h")
        with pytest.raises(PluginError, match="there are 2, not one"):
            await asked("getDevice", hostname="h", projectId=PROJECT)
        unreserved = metal.add_device()
        with pytest.raises(PluginError, match="is not in reserved hardware"):
            await asked("getHardwareReservation", deviceId=unreserved["id"])

    run(scenario())


def test_networks_are_found(metal: FakePlatform) -> None:
    async def scenario() -> None:
        _, vlan, state, _ = await made("Vlan", {**VLAN, "vxlan": 1001})
        shown = {**state, "vlanId": vlan}
        assert await asked("getVlan", vlanId=vlan) == shown
        assert await asked("getVlan", projectId=PROJECT, vxlan=1001, metro="lb") == shown
        bond, _ = metal.add_ports()
        [device] = [each for each in metal.devices.values() if bond in each["network_ports"]]
        by_name = await asked("getPort", deviceId=device["id"], name="bond0")
        assert {**by_name, "portId": bond["id"]} == {
            **(await asked("getPort", portId=bond["id"])),
            "deviceId": device["id"],
        }
        with pytest.raises(PluginError, match=r"port eth7 of device .*: there is none"):
            await asked("getPort", deviceId=device["id"], name="eth7")
        given = {"projectId": PROJECT, "vlanId": vlan, "privateIpv4SubnetSize": 16}
        _, gateway, state, _ = await made("Gateway", given)
        assert await asked("getGateway", gatewayId=gateway) == {**state, "gatewayId": gateway}
        _, connection, state, _ = await made("Connection", CONNECTION)
        assert await asked("getConnection", connectionId=connection) == {**state, "connectionId": connection}
        wanted = {"connectionId": connection, "portId": "cp", "projectId": PROJECT, "vlanId": vlan}
        _, circuit, state, _ = await made("VirtualCircuit", wanted)
        told = ("id", "name", "description", "status", "vnid", "nniVnid", "nniVlan", "projectId")
        assert await asked("getVirtualCircuit", virtualCircuitId=circuit) == {
            "virtualCircuitId": circuit,
            **{name: state[name] for name in told},
        }

    run(scenario())


def test_blocks_are_found(metal: FakePlatform) -> None:
    block = metal.add_block(PROJECT, {"quantity": 4, "type": "public_ipv4", "facility": "lab1"})

    async def scenario() -> None:
        found = await asked("getReservedIpBlock", id=block["id"])
        assert (found["cidrNotation"], found["quantity"], found["type"], "global" in found) == (
            "192.0.2.128/30",
            4,
            "public_ipv4",
            False,
        )
        by_address = await asked("getReservedIpBlock", projectId=PROJECT, ipAddress="192.0.2.130")
        assert by_address == {**found, "ipAddress": "192.0.2.130"}
        wanted = {"projectId": PROJECT, "addressFamily": 4, "public": True}
        for place in ({"metro": "lb"}, {"facility": "lab1"}, {}):
            created = await asked("getPrecreatedIpBlock", **wanted, **place)
            assert (created["id"], created["global"]) == (block["id"], False)
        every = await asked("getIpBlockRanges", projectId=PROJECT)
        empty: Json = {"globalIpv4s": [], "privateIpv4s": [], "ipv6s": []}
        assert every == {"id": f"{PROJECT}-IPs", "projectId": PROJECT, "publicIpv4s": ["192.0.2.128/30"], **empty}
        elsewhere = await asked("getIpBlockRanges", projectId=PROJECT, metro="DA")
        assert (elsewhere["id"], elsewhere["metro"], elsewhere["publicIpv4s"]) == (f"{PROJECT}-da-IPs", "da", [])

    run(scenario())


def test_accounts_are_found(metal: FakePlatform) -> None:
    async def scenario() -> None:
        _, organization, _, _ = await made("Organization", {"name": "o"})
        found = await asked("getOrganization", organizationId=organization)
        assert (found["name"], found["projectIds"]) == ("o", [PROJECT])
        assert await asked("getOrganization", name="o") == found
        bgp = {"deploymentType": "local", "asn": 65000, "md5": "m"}
        _, project, _, _ = await made("Project", {"name": "p", "bgpConfig": bgp})
        metal.projects[project]["members"] = [{"href": f"{BASE}/users/u"}]
        found = await asked("getProject", projectId=project)
        assert (found["organizationId"], found["userIds"]) == (ORGANIZATION, ["u"])
        assert found["bgpConfigs"] == [{**bgp, "status": "enabled", "maxPrefix": 10}]
        assert await asked("getProject", name="p") == found
        _, key, state, _ = await made(
            "ProjectSshKey", {"projectId": PROJECT, "name": "k", "publicKey": "ssh-ed25519 A"}
        )
        assert await asked("getProjectSshKey", projectId=PROJECT, id=key) == state
        assert await asked("getProjectSshKey", projectId=PROJECT, search="k") == {**state, "search": "k"}
        _, request, _, _ = await made("SpotMarketRequest", SPOT)
        found = await asked("getSpotMarketRequest", requestId=request)
        assert found["deviceIds"] == list(metal.devices)
        assert (found["metro"], found["maxBidPrice"], found["plan"]) == ("lb", 0.43, "c3.small.x86")

    run(scenario())
