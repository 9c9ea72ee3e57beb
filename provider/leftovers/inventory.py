"""Everything in a project that carries our marks.

Machines and reserved blocks carry them as tags; SSH keys, API keys and VLANs, which have none everywhere, as a label
`metal-ipi:<stack>:<cluster>` in their name or description. A spot market request is marked by the machines that it
orders, a BGP session by its machine, a gateway by its VLAN or its addresses.

Paths and members: the Metal API's reference.
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
    """One thing in a project that carries our marks."""

    kind: str
    """`machine`, `SSH key`, ...: see KINDS."""
    id: str
    name: str
    project: str
    created: str | None
    """When it was made, ISO 8601; None where the API does not say."""
    state: str
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """`stack`, `cluster`, and of machines also `name`, `role` and `run`, as far as it carries them."""
    request: str = ""
    """The id of the spot market request that has got it; empty where none has."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of resource: where it is listed, how it is called, what marks it."""

    name: str
    listed: str
    """Below /projects/<id>/; one is deleted by its id below the same name."""
    member: str
    """Of the answer."""
    called: Callable[[Document], Any]
    marked: Callable[[Document, Collection[Resource]], dict[str, str]]
    """What marks one; it may ask those of its project that were listed before it."""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the listing."""
    deleting: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters of the deletion."""


def _tagged(item: Document, _: Collection[Resource]) -> dict[str, str]:
    return marks_of(item)


def _of_machines(item: Document, there: Collection[Resource]) -> dict[str, str]:
    """Of the machines that it orders: what is to be put on them says it, else what is on one of them."""
    own = marks((item.get("instance_parameters") or {}).get("tags") or ())
    ids = _machines_of(item)
    return own or next((dict(each.marks) for each in there if each.kind == MACHINE and each.id in ids), {})


def _of_its_machine(item: Document, there: Collection[Resource]) -> dict[str, str]:
    id = id_of(item.get("device") or {})
    return next((dict(each.marks) for each in there if each.kind == MACHINE and each.id == id), {})


def _machines_of(item: Document) -> set[str]:
    return {id_of(each) for each in item.get("devices") or item.get("instances") or ()}


def _of_network(item: Document, there: Collection[Resource]) -> dict[str, str]:
    """Of its VLAN, or of the addresses it was given."""
    ids = {id_of(item.get(part) or {}) for part in ("virtual_network", "ip_reservation")}
    own = marks((item.get("ip_reservation") or {}).get("tags") or ())
    return own or next((dict(each.marks) for each in there if each.id in ids), {})


MACHINE = "machine"
SPOT_REQUEST = "spot market request"
# As they are listed: what marks others comes before them.
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
        # What a machine has by itself goes with it.
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
    """What is in a project."""

    ours: list[Resource]
    """What carries our marks, in the order of KINDS."""
    others: int
    """How many things are there besides, which do not go by themselves with what is ours."""


async def inventory(client: MetalClient, project: str) -> Inventory:
    """Nothing when the project is gone."""
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
    """Every project that the token reaches. They carry no marks: whose they are, others have to know.

    The state of one that holds machines, anybody's, is `in use`.
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
