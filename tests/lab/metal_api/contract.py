"""What the contract test needs: the official description, where it is known to be wrong, and things to ask about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx

from tests.lab.metal_api import description
from tests.lab.metal_api.harness import API, IDENTITY, ORDER, PROJECT, PUBLIC_KEY, World, world

ROOT = Path(__file__).parents[3]
_BESIDE = "../shared/data/metal-openapi/openapi3.yaml"
DESCRIPTION = ROOT / _BESIDE
"""No part of the project."""
ABSENT = f"the official description is not here: {_BESIDE}"
T = TypeVar("T")

NULL: dict[str, tuple[str, ...]] = {
    "BgpConfig": ("route_object",),
    "BgpNeighborData": ("md5_password",),
    "Device": ("description", "image_url", "ipxe_script_url", "spot_price_max", "termination_time"),
    "IPReservation": ("details", "facility"),
    "Meta": ("next", "previous"),
    "Port": ("native_virtual_network",),
}
"""Schema → fields that the real API answers as null where there is nothing to say. The description knows no null but
for BgpConfig.md5; of IPReservation.facility its own text says so, of the others the official clients' types."""

STATUSES: dict[str, tuple[tuple[str, str], ...]] = {
    "404": (
        ("GET", "/devices/{id}/bgp/sessions"),
        ("GET", "/organizations/{id}/projects"),
        ("GET", "/projects/{id}/ssh-keys"),
        ("POST", "/devices/{id}/bgp/sessions"),
        ("POST", "/organizations/{id}/projects"),
        ("POST", "/projects"),
        ("POST", "/projects/{id}/ssh-keys"),
    ),
    "422": (
        ("DELETE", "/ips/{id}"),
        ("DELETE", "/projects/{id}"),
        ("DELETE", "/spot-market-requests/{id}"),
    ),
}
"""Status → operations that answer it although the description does not list it for them: nobody has said what else the
real API answers to an id that there is not, to deleting what is in use, or to parameters that make no sense."""

UNTYPED: dict[str, tuple[str, ...]] = {
    "Metadata": ("network",),
}
"""Schema → fields whose type is not as described: the metadata service tells addresses as objects, not as texts, and
Afterburn reads them so."""


@cache
def described() -> dict[str, Any]:
    """The description, put right by these tables."""
    document = description.read(DESCRIPTION)
    schemas, error = document["components"]["schemas"], {"$ref": "#/components/schemas/Error"}
    for name, fields in UNTYPED.items():
        for each in fields:
            del schemas[name]["properties"][each]
    for name, fields in NULL.items():
        for each in fields:
            known = schemas[name]["properties"][each]
            assert not known.get("nullable"), f"{name}.{each} is described as nullable by now"
            schemas[name]["properties"][each] = {"allOf": [known], "nullable": True}
    for status, operations in STATUSES.items():
        for method, path in operations:
            answers = document["paths"][path][method.lower()]["responses"]
            assert status not in answers, f"{method} {path}: {status} is described by now"
            answers[status] = {"description": "", "content": {"application/json": {"schema": error}}}
    return document


@dataclass
class Stage:
    """A world that has one of everything, and the loop that it lives in."""

    loop: asyncio.AbstractEventLoop
    lab: World
    ids: dict[str, str]
    """By what it is of."""

    def run(self, awaitable: Awaitable[T]) -> T:
        """Let the world run until something is done."""
        return self.loop.run_until_complete(_done(awaitable))

    def filled(self, value: Any) -> Any:
        """A body whose texts of the form `<what>` are the ids of what is on the stage."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in cast("dict[str, Any]", value).items()}
        if isinstance(value, str) and value.startswith("<"):
            return self.ids[value[1:-1]]
        return value

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request."""
        return self.run(self.lab.client.request(method, path, **options))


async def _done(awaitable: Awaitable[T]) -> T:
    return await awaitable


@contextmanager
def staged(directory: Path) -> Generator[Stage, None, None]:
    """A stage, furnished."""
    loop = asyncio.new_event_loop()
    context = world(directory)
    try:
        lab = loop.run_until_complete(_done(context.__aenter__()))
        try:
            yield Stage(loop, lab, loop.run_until_complete(_furnished(lab)))
        finally:
            loop.run_until_complete(_done(context.__aexit__(None, None, None)))
    finally:
        loop.close()


async def _furnished(lab: World) -> dict[str, str]:
    key = await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
    await lab.post(f"{PROJECT}/bgp-configs", {"deployment_type": "local", "asn": 65000}, status=204)
    device = await lab.order(tags=["one"])
    await lab.booted(device["id"])
    block, free = [
        await lab.post(f"{PROJECT}/ips", {"type": "public_ipv4", "quantity": 4, "metro": "lb"}) for _ in range(2)
    ]
    session = await lab.post(f"{device['href']}/bgp/sessions", {"address_family": "ipv4"})
    project = await lab.post(f"{API}/projects", {"name": "another"})
    vlans = [
        await lab.post(f"{PROJECT}/virtual-networks", {"metro": "lb", "vxlan": number}) for number in (1000, 1500, 1999)
    ]
    bond, interface, _ = device["network_ports"]
    batches = f"{bond['href']}/vlan-assignments/batches"
    batch = await lab.post(batches, {"vlan_assignments": [{"vlan": "1000"}]})
    lab.elapse(1)
    wanted = {"virtual_network_id": vlans[0]["id"], "private_ipv4_subnet_size": 8}
    gateway = await lab.post(f"{PROJECT}/metal-gateways", wanted)
    reservation = await lab.post("/lab/hardware-reservations", {"plan": "c3.small.x86", "facility": "lab1"})
    request = await lab.post(f"{PROJECT}/spot-market-requests", _BODIES["POST", "/projects/{id}/spot-market-requests"])
    return {
        "project": IDENTITY.project_id,
        "empty project": project["id"],
        "organization": IDENTITY.organization_id,
        "key": key["id"],
        "device": device["id"],
        "second device": (await lab.order(hostname="second"))["id"],
        "block": block["id"],
        "free block": free["id"],
        "session": session["id"],
        "vlan": vlans[0]["id"],
        "free vlan": vlans[1]["id"],
        "bond": bond["id"],
        "interface": interface["id"],
        "vlan batch": batch["id"],
        "gateway": gateway["id"],
        "reservation": reservation["id"],
        "spot request": request["id"],
    }


@dataclass(frozen=True, kw_only=True)
class Example:
    """A request that must succeed, and what is known of the operation otherwise."""

    at: dict[str, str]
    """Path parameter → what of the stage it names."""
    body: Any = None
    """Its fields that must be as they are, in generated requests as well, for the request to succeed."""


_BELOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/devices/{id}", {"id": "device"}),
    ("/projects/{id}", {"id": "project"}),
    ("/organizations/{id}", {"id": "organization"}),
    ("/ssh-keys/{id}", {"id": "key"}),
    ("/bgp/sessions/{id}", {"id": "session"}),
    ("/ips/{id}", {"id": "block"}),
    ("/virtual-networks/{id}", {"id": "vlan"}),
    ("/ports/{id}/vlan-assignments/batches/{batch_id}", {"id": "bond", "batch_id": "vlan batch"}),
    ("/ports/{id}", {"id": "bond"}),
    ("/metal-gateways/{id}", {"id": "gateway"}),
    ("/hardware-reservations/{id}", {"id": "reservation"}),
    ("/spot-market-requests/{id}", {"id": "spot request"}),
    ("/projects/{project_id}/", {"project_id": "project"}),
)
"""What the parameters of a path name; the first that it begins with."""

_AT: dict[tuple[str, str], dict[str, str]] = {
    ("DELETE", "/projects/{id}"): {"id": "empty project"},
    ("DELETE", "/ips/{id}"): {"id": "free block"},
    ("DELETE", "/virtual-networks/{id}"): {"id": "free vlan"},
    ("POST", "/devices/{id}/bgp/sessions"): {"id": "second device"},
}
"""Where another has to be asked for."""

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHDUVRZFIhPMGHwSYAG0CwBt3H5Tq0L4+h3M7HzDwwZJ"
_BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/projects"): {"name": "p", "organization_id": IDENTITY.organization_id},
    ("POST", "/organizations/{id}/projects"): {"name": "p"},
    ("PUT", "/projects/{id}"): {"name": "p"},
    ("POST", "/projects/{id}/ssh-keys"): {"label": "l", "key": _KEY},
    ("PUT", "/ssh-keys/{id}"): {"label": "l", "key": _KEY},
    ("POST", "/projects/{id}/devices"): ORDER,
    ("PUT", "/devices/{id}"): {"hostname": "h", "billing_cycle": "hourly"},
    ("POST", "/devices/{id}/actions"): {"type": "reboot"},
    ("POST", "/devices/{id}/bgp/sessions"): {"address_family": "ipv4"},
    ("POST", "/projects/{id}/bgp-configs"): {"deployment_type": "local", "asn": 65000},
    ("POST", "/projects/{id}/ips"): {"type": "public_ipv4", "quantity": 1, "metro": "lb", "facility": None},
    ("POST", "/capacity"): {"servers": [{"facility": "da11", "plan": "c3.small.x86", "quantity": "2"}]},
    ("POST", "/capacity/metros"): {"servers": [{"metro": "da", "plan": "c3.small.x86", "quantity": "2"}]},
    ("POST", "/projects/{id}/virtual-networks"): {"metro": "lb", "facility": None, "vxlan": None},
    ("POST", "/ports/{id}/unassign"): {"vnid": "1000"},
    ("POST", "/ports/{id}/vlan-assignments/batches"): {"vlan_assignments": [{"vlan": "1999", "state": "assigned"}]},
    ("POST", "/projects/{id}/spot-market-requests"): {
        "devices_min": 1,
        "devices_max": 2,
        "max_bid_price": 0.5,
        "metro": "lb",
        "facilities": None,
        "end_at": None,
        "instance_parameters": {name: value for name, value in ORDER.items() if name != "metro"},
    },
    ("POST", "/projects/{project_id}/metal-gateways"): {
        "virtual_network_id": "<free vlan>",
        "private_ipv4_subnet_size": 8,
        "ip_reservation_id": None,
    },
}


def example(method: str, path: str) -> Example:
    """The request that must succeed."""
    operation = (method, path)
    at = _AT.get(operation) or next((names for start, names in _BELOW if path.startswith(start)), {})
    return Example(at=at, body=_BODIES.get(operation))
