"""What machines ask: the iPXE script, metadata, userdata; and what they tell: phone home, their state.

A machine is known by its source address, as on Metal; nobody else is told anything.
"""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.metal_api import bgp, faults
from lab.metal_api.catalog import FACILITIES
from lab.metal_api.elastic import assignments_of
from lab.metal_api.exceptions import ApiError, NotFound
from lab.metal_api.models import Device, Json
from lab.metal_api.network_responses import BASE, assignment_document, network_of, second_mac
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.responses import iqn
from lab.metal_api.state import GONE, Account

_log = logging.getLogger(__name__)
HOST = "https://metadata.packet.net"
"""With platform id packet, Ignition and Afterburn have this name built in."""


def metadata_document(account: Account, device: Device) -> Json:
    """The document at /metadata. Afterburn retries for ever when a field it knows is missing."""
    return {
        "id": device.id,
        "hostname": device.hostname,
        "iqn": iqn(device),
        "operating_system": {
            "slug": device.operating_system,
            "distro": device.operating_system,
            "version": "1",
            "license_activation": {"state": "unlicensed"},
            "image_tag": None,
        },
        "plan": device.plan,
        "reserved": False,
        "class": device.plan,
        "facility": device.facility,
        "metro": FACILITIES[device.facility].metro,
        "private_subnets": ["10.0.0.0/8", "203.0.113.0/24", "198.19.0.0/16"],
        "tags": device.tags,
        "ssh_keys": account.device_keys(device),
        "customdata": device.customdata,
        "storage": {},
        "network": {
            "bonding": {
                "mode": 5,
                "link_aggregation": "bonded",
                "mac": device.mac,
            },
            "interfaces": [
                {"name": "eth0", "mac": device.mac, "bond": "bond0"},
                {"name": "eth1", "mac": second_mac(device.mac), "bond": "bond0"},
            ],
            "addresses": [
                *(_address(device, index) for index in range(len(device.addresses))),
                *(_elastic(assignment_document(account, entry)) for entry in assignments_of(account, device)),
            ],
            "metal_gateways": [],
        },
        "bgp_neighbors": bgp.neighbors(account, device),
        "volumes": [],
        "spot": {},
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


def _elastic(document: Json) -> Json:
    """An elastic address, which the machine has to configure or announce itself."""
    names = ("id", "address_family", "netmask", "created_at", "public", "cidr", "management", "enabled")
    block = document["parent_block"]
    return {
        **{name: document[name] for name in (*names, "network", "address", "gateway")},
        "parent_block": {**block, "href": str(block["href"]).removeprefix(BASE)},
    }


class Metadata:
    """The operations of the metadata service."""

    def __init__(self, account: Account, provisioner: Provisioner) -> None:
        self._account = account
        self._provisioner = provisioner

    def _caller(self, request: Request) -> Device:
        device = self._account.device_at(request.client.host) if request.client else None
        if device is None or device.state == GONE:
            raise NotFound
        return device

    async def ipxe(self, request: Request) -> Response:
        """The script a machine starts with; having got it, a custom_ipxe device is active."""
        device = self._account.device(request.path_params["id"])
        if device.state == GONE or faults.on_machine(self._account, "never_boots", device):
            raise NotFound
        script = await self._script(device)
        self._account.add_event(device, "provisioning.104.01", "Device connected to DHCP system")
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
        self._account.add_event(device, "instance.phone_home", f"{device.hostname} phoned home")
        return Response(status_code=200)

    async def user_state(self, request: Request) -> Response:
        """A state a machine posts about itself (Ignition does): {"state": "running", "message": "..."}."""
        device = self._caller(request)
        try:
            body: Any = json.loads(await request.body() or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return JSONResponse({"errors": ["The body must be a JSON object"]}, 422)
        document = cast("Json", body)
        state = str(document.get("state", ""))
        kind = f"user.{document.get('code', 1001)}"
        self._account.add_event(device, kind, str(document.get("message", "")), state)
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
