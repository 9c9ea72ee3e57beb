"""Lists everything in a project that has our marks.

Machines and reserved blocks have them as tags; SSH keys, API keys and VLANs, which do not always have tags, as a label
`metal-ipi:<stack>:<cluster>` in their name or description. A spot market request is recognised by the machines that it
orders, a BGP session by its machine, a gateway by its VLAN or its addresses.

Paths and fields: the Metal API's reference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from metal_ipi.provider.metal_client import MetalClient, Refused
from metal_ipi.provider.platforms.equinix_metal.documents import id_of, marks, marks_of

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One thing in a project that has our marks."""

    kind: str
    """`machine`, `SSH key`, ...: see KINDS."""
    id: str
    name: str
    project: str
    created: str | None
    """Its creation time, ISO 8601; None if the API does not report it."""
    state: str
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """The marks: `stack`, `cluster`; for machines also `name`, `role` and `run`, as far as they are there."""
    request: str = ""
    """The id of the spot market request that it belongs to; empty if there is none."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of resource: its path in the API, its name, and how marks are found."""

    name: str
    listed: str
    """The path below /projects/<id>/ of its list. Its last part with an id is the path for deletion."""
    member: str
    """The field of the answer with the list."""
    called: Callable[[Document], Any]
    marked: Callable[[Document, Collection[Resource]], dict[str, str]]
    """Returns the marks of one; may use the resources of the project that were listed before."""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters for the list."""
    deleting: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters for the deletion."""


def _tagged(item: Document, _: Collection[Resource]) -> dict[str, str]:
    return marks_of(item)


def _of_machines(item: Document, there: Collection[Resource]) -> dict[str, str]:
    """The marks of the machines that it orders: from their parameters, or from one of its machines."""
    own = marks((item.get("instance_parameters") or {}).get("tags") or ())
    ids = _machines_of(item)
    return own or next((dict(each.marks) for each in there if each.kind == MACHINE and each.id in ids), {})


def _of_its_machine(item: Document, there: Collection[Resource]) -> dict[str, str]:
    id = id_of(item.get("device") or {})
    return next((dict(each.marks) for each in there if each.kind == MACHINE and each.id == id), {})


def _machines_of(item: Document) -> set[str]:
    return {id_of(each) for each in item.get("devices") or item.get("instances") or ()}


def _of_network(item: Document, there: Collection[Resource]) -> dict[str, str]:
    """The marks of its VLAN, or of its addresses."""
    ids = {id_of(item.get(part) or {}) for part in ("virtual_network", "ip_reservation")}
    own = marks((item.get("ip_reservation") or {}).get("tags") or ())
    return own or next((dict(each.marks) for each in there if each.id in ids), {})


MACHINE = "machine"
SPOT_REQUEST = "spot market request"
# In this order, because marks of later kinds come from earlier ones.
KINDS = (
    Kind(
        name=MACHINE,
        listed="devices",
        member="devices",
        called=lambda item: item.get("hostname"),
        marked=_tagged,
        deleting={"force_delete": "true"},
    ),
    Kind(
        name=SPOT_REQUEST,
        listed="spot-market-requests",
        member="spot_market_requests",
        called=lambda item: (item.get("instance_parameters") or {}).get("hostname"),
        marked=_of_machines,
        params={"include": "devices"},
        deleting={"force_termination": "true"},
    ),
    Kind(
        name="BGP session",
        listed="bgp/sessions",
        member="bgp_sessions",
        called=lambda item: item.get("address_family"),
        marked=_of_its_machine,
    ),
    Kind(
        name="VLAN",
        listed="virtual-networks",
        member="virtual_networks",
        called=lambda item: item.get("description") or item.get("vxlan"),
        marked=_tagged,
    ),
    Kind(
        name="reserved address",
        listed="ips",
        member="ip_addresses",
        called=lambda item: f"{item['network']}/{item['cidr']}" if item.get("cidr") else item.get("network"),
        # A machine's own addresses are deleted with it.
        marked=lambda item, there: {} if item.get("management") else _tagged(item, there),
    ),
    Kind(
        name="gateway",
        listed="metal-gateways",
        member="metal_gateways",
        called=lambda item: (item.get("virtual_network") or {}).get("vxlan"),
        marked=_of_network,
        params={"include": "virtual_network,ip_reservation"},
    ),
    Kind(
        name="SSH key",
        listed="ssh-keys",
        member="ssh_keys",
        called=lambda item: item.get("label"),
        marked=_tagged,
    ),
    Kind(
        name="API key",
        listed="api-keys",
        member="api_keys",
        called=lambda item: item.get("description"),
        marked=_tagged,
    ),
)
PROJECT = "project"


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The content of a project."""

    ours: list[Resource]
    """Resources with our marks, in the order of KINDS."""
    others: int
    """The number of other things that are not deleted automatically with ours."""


async def inventory(client: MetalClient, project: str) -> Inventory:
    """The content of a project; empty if the project is gone."""
    found: list[Resource] = []
    requests: dict[str, str] = {}
    others = 0
    for kind in KINDS:
        try:
            items = await client.listed(f"/projects/{project}/{kind.listed}", kind.member, **kind.params)
        except Refused as error:
            if error.status == 404:
                continue
            raise
        if kind.name == SPOT_REQUEST:
            requests = {machine: str(item["id"]) for item in items for machine in _machines_of(item)}
        for item in items:
            if carried := kind.marked(item, found):
                found.append(_resource(kind.name, item, kind.called(item), project, carried))
            elif not item.get("management"):
                others += 1
    return Inventory(ours=[replace(each, request=requests.get(each.id, "")) for each in found], others=others)


async def projects(client: MetalClient) -> list[Resource]:
    """All projects that the token can access. They have no marks; the caller must know which are ours.

    The state of a project with machines, of any owner, is `in use`.
    """
    return [
        _resource(PROJECT, {**item, "state": "in use" if item.get("devices") else ""}, item.get("name"), item["id"], {})
        for item in await client.listed("/projects", "projects")
    ]


def _resource(kind: str, item: Document, name: Any, project: str, carried: dict[str, str]) -> Resource:
    return Resource(
        kind=kind,
        id=str(item["id"]),
        name=str(name or item["id"]),
        project=project,
        created=item.get("created_at"),
        state=str(item.get("state") or ""),
        marks=carried,
    )
