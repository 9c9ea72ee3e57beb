"""What machines ask: the iPXE script, metadata, userdata; and what they tell: phone home, their state.

A machine is known by its source address, as on Metal; nobody else is told anything.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.metal_api import faults
from lab.metal_api.addresses import network_of
from lab.metal_api.bgp import neighbors
from lab.metal_api.body import parsed
from lab.metal_api.devices import BOND, GONE, Device, add_event, device_at
from lab.metal_api.exceptions import ApiError, NotFound
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys import device_keys
from lab.metal_api.state import Account

_log = logging.getLogger(__name__)
HOST = "https://metadata.packet.net"
"""With platform id packet, Ignition and Afterburn have this name built in."""


def metadata_document(account: Account, device: Device) -> Json:
    """The document at /metadata. Afterburn retries for ever when a field it knows is missing."""
    ending = device.spot_price_max is not None and device.termination_time
    return {
        "id": device.id,
        "hostname": device.hostname,
        "iqn": device.iqn,
        "operating_system": {
            "slug": device.operating_system,
            "distro": device.operating_system,
            "version": "1",
            "license_activation": {"state": "unlicensed"},
            "image_tag": None,
        },
        "plan": device.plan,
        "reserved": device.hardware_reservation_id is not None,
        "class": device.plan,
        "facility": device.facility,
        "metro": device.metro,
        "private_subnets": ["10.0.0.0/8", "203.0.113.0/24", "198.19.0.0/16"],
        "tags": device.tags,
        "ssh_keys": device_keys(account, device),
        "customdata": device.customdata,
        "storage": {},
        "network": {
            "bonding": {
                "mode": 5,
                "link_aggregation": "bonded",
                "mac": device.mac,
            },
            "interfaces": [{"name": name, "mac": mac, "bond": BOND} for name, mac in device.macs.items()],
            "addresses": [_address(device, index) for index in range(len(device.addresses))],
            "metal_gateways": [],
        },
        "bgp_neighbors": neighbors(account, device),
        "volumes": [],
        "spot": {"termination_time": ending} if ending else {},
        "api_url": HOST,
        "phone_home_url": f"{HOST}/phone-home",
        "user_state_url": f"{HOST}/events",
    }


def _address(device: Device, index: int) -> Json:
    address = device.addresses[index]
    network = network_of(address)
    block = {"network": str(network.network_address), "netmask": str(network.netmask), "cidr": address.prefix}
    return {
        "id": device.address_ids[index],
        "address_family": 4,
        "netmask": str(network.netmask),
        "created_at": device.created_at,
        "public": address.public,
        "cidr": address.prefix,
        "management": True,
        "enabled": True,
        "network": str(network.network_address),
        "address": address.address,
        "gateway": address.gateway,
        "parent_block": {**block, "href": f"/ips/{device.address_ids[index]}"},
    }


class Metadata:
    """The operations of the metadata service."""

    def __init__(self, account: Account, provisioner: Provisioner) -> None:
        self._account = account
        self._provisioner = provisioner

    def _caller(self, request: Request) -> Device:
        device = device_at(self._account, request.client.host) if request.client else None
        if device is None or device.state == GONE:
            raise NotFound
        return device

    async def ipxe(self, request: Request) -> Response:
        """The script a machine starts with; having got it, a custom_ipxe device is active."""
        device = self._account.table(Device).find(request.path_params["id"])
        if device.state == GONE or faults.on_machine(self._account, "never_boots", device):
            raise NotFound
        script = await self._script(device)
        add_event(self._account, device, "provisioning.104.01", "Device connected to DHCP system")
        self._provisioner.script_served(device)
        return PlainTextResponse(script)

    async def _script(self, device: Device) -> str:
        script = device.userdata
        chained = not script.startswith("#!ipxe")
        if chained:
            script = f"#!ipxe\n\nchain --autofree {device.ipxe_script_url}\n"
        if not faults.on_machine(self._account, "wrong_rootfs", device):
            return script
        if chained:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.get(str(device.ipxe_script_url))
            script = answer.raise_for_status().text
        return faults.with_wrong_rootfs(script)

    async def metadata(self, request: Request) -> Response:
        return JSONResponse(metadata_document(self._account, self._caller(request)))

    async def userdata(self, request: Request) -> Response:
        device = self._caller(request)
        text = device.userdata
        if faults.on_machine(self._account, "ignition_fails", device):
            text = faults.with_broken_ignition(text)
        if faults.on_machine(self._account, "no_ssh", device):
            text = faults.without_ssh(text)
        return PlainTextResponse(text)

    async def phone_home(self, request: Request) -> Response:
        """Afterburn's check-in, without a body."""
        device = self._caller(request)
        add_event(self._account, device, "instance.phone_home", f"{device.hostname} phoned home")
        return Response(status_code=200)

    async def user_state(self, request: Request) -> Response:
        """A state a machine posts about itself (Ignition does): {"state": "running", "message": "..."}."""
        device = self._caller(request)
        try:
            body: Any = parsed(await request.body() or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return JSONResponse({"errors": ["The body must be a JSON object"]}, 422)
        document = cast("Json", body)
        state = str(document.get("state", ""))
        kind = f"user.{document.get('code', 1001)}"
        add_event(self._account, device, kind, str(document.get("message", "")), state)
        return Response(status_code=200)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    _log.info("%s %s: %s", request.method, request.url.path, error)
    return JSONResponse(error.body(), error.status)


def metadata_app(account: Account, provisioner: Provisioner) -> ASGIApp:
    """The application behind metadata.packet.net, and the boot server of the provisioning network."""
    service = Metadata(account, provisioner)
    routes = [
        Route("/ipxe/{id}", service.ipxe, methods=["GET"]),
        Route("/metadata", service.metadata, methods=["GET"]),
        Route("/userdata", service.userdata, methods=["GET"]),
        Route("/phone-home", service.phone_home, methods=["POST"]),
        Route("/events", service.user_state, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={ApiError: _refused})
