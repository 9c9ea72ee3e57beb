"""What the contract test needs: the official description, where it is known to be wrong, and things to ask about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx

from lab.metal_api import coverage, description
from tests.lab.metal_api import contract_networks as networks
from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, PUBLIC_KEY, World, world

DESCRIPTION = coverage.ROOT / coverage.DESCRIPTION
ABSENT = f"the official description is not here: {coverage.DESCRIPTION}"
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
        ("GET", "/devices/{id}/ssh-keys"),
        ("GET", "/organizations/{id}/capacity"),
        ("GET", "/organizations/{id}/capacity/metros"),
        ("GET", "/organizations/{id}/projects"),
        ("GET", "/projects/{id}/ssh-keys"),
        ("POST", "/devices/{id}/bgp/sessions"),
        ("POST", "/organizations/{id}/projects"),
        ("POST", "/projects"),
        ("POST", "/projects/{id}/ssh-keys"),
    ),
    "422": (
        ("DELETE", "/ips/{id}"),
        ("DELETE", "/organizations/{id}"),
        ("DELETE", "/projects/{id}"),
        ("GET", "/devices/{id}/bandwidth"),
        ("GET", "/devices/{id}/usages"),
        ("GET", "/ips/{id}/available"),
        ("GET", "/projects/{id}/usages"),
        ("PATCH", "/ips/{id}"),
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
    for status in STATUSES.keys() | networks.STATUSES.keys():
        for method, path in (*STATUSES.get(status, ()), *networks.STATUSES.get(status, ())):
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
def staged(directory: Path, path: str = "") -> Generator[Stage, None, None]:
    """A stage, furnished; with networks and the like if the path is about these."""
    loop = asyncio.new_event_loop()
    context = world(directory)
    try:
        lab = loop.run_until_complete(_done(context.__aenter__()))
        try:
            yield Stage(loop, lab, loop.run_until_complete(_furnished(lab, path)))
        finally:
            loop.run_until_complete(_done(context.__aexit__(None, None, None)))
    finally:
        loop.close()


async def _furnished(lab: World, about: str) -> dict[str, str]:
    async def made(path: str, **body: Any) -> dict[str, Any]:
        answer = await lab.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    key = await made(f"{PROJECT}/ssh-keys", label="k", key=PUBLIC_KEY)
    await made(f"{PROJECT}/bgp-configs", deployment_type="local", asn=65000)
    device = await lab.order(tags=["one"])
    await lab.booted(device["id"])
    block = await made(f"{PROJECT}/ips", type="public_ipv4", quantity=4, metro="lb")
    free = await made(f"{PROJECT}/ips", type="public_ipv4", quantity=2, metro="lb", facility=None)
    path = f"/metal/v1/devices/{device['id']}"
    assignment = await made(f"{path}/ips", address=block["network"])
    session = await made(f"{path}/bgp/sessions", address_family="ipv4")
    batch = await made(f"{PROJECT}/devices/batch", batches=[{**ORDER, "quantity": 1}])
    empty = await made("/metal/v1/organizations", name="empty")
    project = await made(f"/metal/v1/organizations/{empty['id']}/projects", name="another")
    second = await lab.order(hostname="second")
    return {
        "project": IDENTITY.project_id,
        "empty project": project["id"],
        "organization": IDENTITY.organization_id,
        "empty organization": (await made("/metal/v1/organizations", name="emptier"))["id"],
        "user": (await lab.client.get("/metal/v1/user")).json()["id"],
        "key": key["id"],
        "device": device["id"],
        "second device": second["id"],
        "block": block["id"],
        "free block": free["id"],
        "assignment": assignment["id"],
        "session": session["id"],
        "batch": batch["batches"][0]["id"],
        "api key": (await made("/metal/v1/user/api-keys", description="d"))["id"],
        "event": (await lab.client.get("/metal/v1/events")).json()["events"][0]["id"],
        "metro": (await lab.client.get("/metal/v1/locations/metros")).json()["metros"][0]["id"],
        **(await networks.furnish(lab, made) if networks.concerns(about) else {}),
    }


Ask = Callable[[dict[str, str]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A request that must succeed, and what is known of the operation otherwise."""

    at: dict[str, str]
    """Path parameter → what of the stage it names."""
    body: Any = None
    """Its fields that must be as they are, in generated requests as well, for the request to succeed."""
    query: dict[str, str] | None = None


_BELOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/devices/{instance_id}/ips/{id}/", {"instance_id": "device", "id": "assignment"}),
    ("/projects/{project_id}/ips/{id}/", {"project_id": "project", "id": "block"}),
    ("/devices/{id}", {"id": "device"}),
    ("/projects/{id}", {"id": "project"}),
    ("/organizations/{id}", {"id": "organization"}),
    ("/users/{id}", {"id": "user"}),
    ("/ssh-keys/{id}", {"id": "key"}),
    ("/user/api-keys/{id}", {"id": "api key"}),
    ("/api-keys/{id}", {"id": "api key"}),
    ("/batches/{id}", {"id": "batch"}),
    ("/bgp/sessions/{id}", {"id": "session"}),
    ("/events/{id}", {"id": "event"}),
    ("/ips/{id}", {"id": "block"}),
    ("/locations/metros/{id}", {"id": "metro"}),
)
"""What the parameters of a path name; the first that it begins with."""

_AT: dict[tuple[str, str], dict[str, str]] = {
    ("DELETE", "/projects/{id}"): {"id": "empty project"},
    ("DELETE", "/organizations/{id}"): {"id": "empty organization"},
    ("DELETE", "/ips/{id}"): {"id": "free block"},
    ("POST", "/devices/{id}/bgp/sessions"): {"id": "second device"},
}
"""Where another has to be asked for."""

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHDUVRZFIhPMGHwSYAG0CwBt3H5Tq0L4+h3M7HzDwwZJ"
_BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/organizations"): {"name": "o", "address": {"address": "1", "zip_code": "2", "country": "XX"}},
    ("PUT", "/organizations/{id}"): {"name": "o", "address": {"address": "1", "zip_code": "2", "country": "XX"}},
    ("PUT", "/user"): {"first_name": "F", "last_name": "L", "timezone": "UTC"},
    ("POST", "/user/api-keys"): {"read_only": True},
    ("POST", "/projects/{id}/api-keys"): {"read_only": False},
    ("POST", "/projects"): {"name": "p", "organization_id": IDENTITY.organization_id},
    ("POST", "/organizations/{id}/projects"): {"name": "p"},
    ("PUT", "/projects/{id}"): {"name": "p"},
    ("POST", "/ssh-keys"): {"label": "l", "key": _KEY},
    ("POST", "/projects/{id}/ssh-keys"): {"label": "l", "key": _KEY},
    ("PUT", "/ssh-keys/{id}"): {"label": "l", "key": _KEY},
    ("POST", "/projects/{id}/devices"): ORDER,
    ("POST", "/projects/{id}/devices/batch"): {"batches": [{**ORDER, "quantity": 2, "hostnames": ["b"]}]},
    ("PUT", "/devices/{id}"): {"hostname": "h", "billing_cycle": "hourly"},
    ("POST", "/devices/{id}/actions"): {"type": "reboot"},
    ("POST", "/devices/{id}/ips"): {"address": "192.0.2.129/32"},
    ("POST", "/devices/{id}/bgp/sessions"): {"address_family": "ipv4"},
    ("PUT", "/bgp/sessions/{id}"): True,
    ("POST", "/projects/{id}/bgp-configs"): {"deployment_type": "local", "asn": 65000},
    ("POST", "/projects/{id}/ips"): {"type": "public_ipv4", "quantity": 1, "metro": "lb", "facility": None},
    ("PATCH", "/ips/{id}"): {"details": "d"},
    ("POST", "/capacity"): {"servers": [{"facility": "da11", "plan": "c3.small.x86", "quantity": "2"}]},
    ("POST", "/capacity/metros"): {"servers": [{"metro": "da", "plan": "c3.small.x86", "quantity": "2"}]},
}
_QUERIES: dict[tuple[str, str], dict[str, str]] = {
    ("GET", "/ips/{id}/available"): {"cidr": "31"},
    ("GET", "/devices/{id}/bandwidth"): {"from": "1767225600", "until": "1767229200"},
}


def example(method: str, path: str) -> Example:
    """The request that must succeed."""
    operation, below = (method, path), (*_BELOW, *networks.BELOW)
    at = (_AT | networks.AT).get(operation) or next((names for start, names in below if path.startswith(start)), {})
    bodies, queries = _BODIES | networks.BODIES, _QUERIES | networks.QUERIES
    return Example(at=at, body=bodies.get(operation), query=queries.get(operation))
