"""Devices, their ports, reservations of hardware, requests at the spot market."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.device import Device
from lab.plugins.equinix_metal.documents import device_state, normal_json, part
from lab.plugins.equinix_metal.functions.base import (
    REQUIRED,
    STRING,
    Arguments,
    Function,
    everything,
    one_of,
    the_only,
)
from lab.plugins.equinix_metal.network_documents import PORT_INCLUDES, port_state, reference
from lab.plugins.equinix_metal.spot_documents import spot_devices, spot_request_state
from lab.plugins.equinix_metal.spot_market_request import SpotMarketRequest
from lab.plugins.values import Json

_SHOWN = (
    "id",
    "hostname",
    "projectId",
    "plan",
    "operatingSystem",
    "state",
    "billingCycle",
    "accessPublicIpv4",
    "accessPublicIpv6",
    "accessPrivateIpv4",
    "tags",
    "sshKeyIds",
    "networkType",
    "rootPassword",
    "alwaysPxe",
    "ipxeScriptUrl",
    "networks",
    "ports",
)
"""What is told of a device as its resource does."""


async def _device(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    identifier, hostname, project = (arguments.get(name) for name in ("deviceId", "hostname", "projectId"))
    if identifier:
        document = (await client.get(f"/devices/{identifier}", include=Device.include)).document
    else:
        path = f"/projects/{project}/devices"
        devices = await everything(client, path, "devices", search=str(hostname), include=Device.include)
        named = [device for device in devices if device.get("hostname") == hostname]
        document = the_only(named, f"device {hostname} in project {project}")
    state = device_state(document, {})
    storage, metro = document.get("storage"), state.get("metro")
    return {
        **{name: state[name] for name in _SHOWN},
        "deviceId": document["id"],
        "facility": state.get("deployedFacility") or "",
        "metro": str(metro).lower() if metro else None,
        "hardwareReservationId": state.get("deployedHardwareReservationId"),
        "storage": normal_json(storage) if storage else None,
    }


def _device_rules(arguments: Arguments) -> Iterator[CheckFailure]:
    if arguments.get("projectId") and arguments.get("deviceId"):
        yield CheckFailure("projectId", "projectId and deviceId exclude each other: give one of them")
    elif arguments.get("hostname") and not arguments.get("deviceId") and not arguments.get("projectId"):
        yield CheckFailure("projectId", "hostname needs projectId")
    else:
        yield from one_of("deviceId", "hostname")(arguments)


async def _port(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    if arguments.get("portId"):
        document = (await client.get(f"/ports/{arguments['portId']}", include=PORT_INCLUDES)).document
    else:
        device, name = arguments["deviceId"], arguments["name"]
        owner = (await client.get(f"/devices/{device}", include=PORT_INCLUDES)).document
        ports: list[dict[str, Json]] = owner.get("network_ports") or []
        document = the_only([port for port in ports if port.get("name") == name], f"port {name} of device {device}")
    return port_state(document)


def _port_rules(arguments: Arguments) -> Iterator[CheckFailure]:
    named = arguments.get("deviceId") and arguments.get("name")
    if arguments.get("portId"):
        yield from one_of("portId", "deviceId")(arguments)
        yield from one_of("portId", "name")(arguments)
    elif not named:
        yield CheckFailure("portId", "either portId is required, or deviceId and name")


async def _reservation(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    device = arguments.get("deviceId")
    if device:
        include = "hardware_reservation.project,hardware_reservation.facility"
        owner = (await client.get(f"/devices/{device}", include=include)).document
        found: dict[str, Json] = owner.get("hardware_reservation") or {}
        if not found:
            raise PluginError(f"device {device} is not in reserved hardware")
    else:
        path = f"/hardware-reservations/{arguments['id']}"
        found = (await client.get(path, include="project,facility,device")).document
    return {
        "id": found["id"],
        "shortId": found.get("short_id") or "",
        "projectId": reference(found, "project"),
        "deviceId": device or reference(found, "device"),
        "plan": part(found, "plan", "slug") or "",
        "facility": part(found, "facility", "code") or "",
        "provisionable": bool(found.get("provisionable")),
        "spare": bool(found.get("spare")),
        "switchUuid": found.get("switch_uuid") or "",
    }


async def _request(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    path = f"/spot-market-requests/{arguments['requestId']}"
    document = (await client.get(path, include=SpotMarketRequest.include)).document
    state = spot_request_state(document)
    return {
        **state,
        "metro": state["metro"].lower() or None,
        "deviceIds": [device["id"] for device in spot_devices(document)],
        "plan": part(document, "plan", "slug") or "",
        "endAt": document.get("end_at"),
    }


DEVICE = Function(
    arguments={"deviceId": STRING, "hostname": STRING, "projectId": STRING},
    look=_device,
    rules=_device_rules,
)
PORT = Function(arguments={"portId": STRING, "deviceId": STRING, "name": STRING}, look=_port, rules=_port_rules)
HARDWARE_RESERVATION = Function(
    arguments={"id": STRING, "deviceId": STRING}, look=_reservation, rules=one_of("id", "deviceId")
)
SPOT_MARKET_REQUEST = Function(arguments={"requestId": REQUIRED}, look=_request)
