"""One of each resource type of the stand-in for `equinix-metal`, made at the emulated API."""

from __future__ import annotations

from typing import Any

import asyncssh
from pulumi.provider.experimental import provider as api

from lab.plugins.equinix_metal.main import EquinixMetalPlugin
from lab.plugins.values import plain_map, wrap_map
from tests.lab.metal_api.harness import IDENTITY
from tests.lab.plugins.harness import Driver, Heard, Json, opened

PROJECT, ORGANIZATION = IDENTITY.project_id, IDENTITY.organization_id
PUBLIC_KEY = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
DEVICE: Json = {
    "hostname": "lab-worker-0",
    "plan": "c3.small.x86",
    "operatingSystem": "custom_ipxe",
    "projectId": PROJECT,
    "metro": "LB",
    "userData": "{}",
    "ipxeScriptUrl": "http://boot/a",
    "tags": ["a", "b"],
}
BLOCK: Json = {"projectId": PROJECT, "quantity": 4, "metro": "LB", "description": "api", "tags": ["b", "a"]}
VLAN: Json = {"projectId": PROJECT, "metro": "LB", "description": "d"}
SPOT: Json = {
    "projectId": PROJECT,
    "devicesMin": 1,
    "devicesMax": 1,
    "maxBidPrice": 0.73,
    "metro": "LB",
    "instanceParameters": {
        "hostname": "spot",
        "plan": "c3.small.x86",
        "operatingSystem": "custom_ipxe",
        "billingCycle": "hourly",
        "ipxeScriptUrl": "http://boot/a",
        "userdata": "{}",
        "tags": ["b", "a"],
    },
    "waitForDevices": False,
}
GIVEN: dict[str, Json] = {
    "BgpSession": {"addressFamily": "ipv4"},
    "Device": DEVICE,
    "Gateway": {"projectId": PROJECT, "privateIpv4SubnetSize": 16},
    "Port": {"bonded": True, "layer2": False, "resetOnDelete": True},
    "Project": {"organizationId": ORGANIZATION, "bgpConfig": {"deploymentType": "local", "asn": 65000}},
    "ProjectSshKey": {"projectId": PROJECT, "name": "mine", "publicKey": PUBLIC_KEY},
    "ReservedIpBlock": BLOCK,
    "SpotMarketRequest": SPOT,
    "Vlan": VLAN,
}
"""What each is asked for, without the ids of others."""


def token(kind: str) -> str:
    """Its type token."""
    return f"equinix-metal:index/{kind[0].lower()}{kind[1:]}:{kind}"


async def driver(kind: str = "Device", log: Heard | None = None, auth: str = IDENTITY.token) -> Driver:
    """A plug-in of its own, asked about one resource type."""
    plugin = EquinixMetalPlugin(log or Heard())
    opened.append(plugin)
    response = await plugin.configure(api.ConfigureRequest({}, wrap_map({"authToken": auth}), True, True))
    assert response.supports_preview and not response.accept_secrets
    return Driver(plugin, token(kind))


async def given(kind: str) -> Json:
    """Inputs with the ids of what must be there before."""
    wanted = dict(GIVEN[kind])
    if kind in ("BgpSession", "Port"):
        _, identifier, state, _ = await made("Device")
        wanted |= {"deviceId": identifier} if kind == "BgpSession" else {"portId": bond_of(state)}
    if kind in ("Gateway", "Port"):
        vlan = (await made("Vlan"))[1]
        wanted |= {"vlanId": vlan} if kind == "Gateway" else {"vlanIds": [vlan]}
    return wanted


def bond_of(state: Json) -> str:
    """The id of a device's bond."""
    return next(port["id"] for port in state["ports"] if port["name"] == "bond0")


async def made(kind: str, wanted: Json | None = None) -> tuple[Driver, str, Json, Json]:
    """A new one: its driver, id, state and inputs; with what it was made as, it shows no difference."""
    resource = await driver(kind)
    inputs = await resource.inputs(wanted or await given(kind))
    identifier, state = await resource.create(inputs)
    kept = plain_map(state)
    assert await resource.diff(kept, inputs) == {}
    return resource, identifier, kept, inputs


def without(values: Json, *names: str) -> Json:
    """The values but for some."""
    return {name: value for name, value in values.items() if name not in names}


def changed(values: Json, change: Any) -> Json:
    """The values with others; None takes one away."""
    return {name: value for name, value in {**values, **change}.items() if value is not None}
