"""Metal gateways: Metal's routers' address in a VLAN, out of a block of the project's or of a private one made for it.

VLANs of the lab carry no traffic: a gateway is a record and nothing more. One that is being deleted has let go of its
VLAN and its block at once, for the official provider deletes these without waiting for it. The API's own words for what
it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import model_validator

from lab.metal_api.access import user_id
from lab.metal_api.addresses import Reservation, lowest
from lab.metal_api.body import Input, NotBlank, problem
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.ips import block_document
from lab.metal_api.listing import BASE, PER_PAGE, link
from lab.metal_api.networks import VirtualNetwork, VlanAssignment
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

PRIVATE_RANGE = "10.64.0.0/10"
"""Where the private blocks come from; nothing of it is routed anywhere."""
SMALLEST = 29
"""The longest prefix of a public block that a gateway can be in: it needs room for machines beside itself."""
SECONDS = 0.5
"""How long it takes to delete one."""


@saved("gateways", indexed=("project_id", "network_id", "state"))
@dataclass(kw_only=True)
class Gateway(Record):
    """A gateway of a VLAN."""

    id: str
    project_id: str
    network_id: str
    reservation_id: str
    created_at: str
    updated_at: str
    state: str = "ready"
    """`ready`, shown as active while ports are in its VLAN, or `deleting`."""
    due: float = 0.0
    """When it is gone, if it is being deleted, in seconds of the epoch."""


def gateway_of(account: Account, network: VirtualNetwork) -> Gateway | None:
    """The gateway of a VLAN."""
    found = account.table(Gateway).where("network_id", network.id)
    return next((gateway for gateway in found if gateway.state != "deleting"), None)


def _state(account: Account, gateway: Gateway) -> str:
    used = account.table(VlanAssignment).where("network_id", gateway.network_id)
    return "active" if gateway.state == "ready" and used else gateway.state


@shows("metal-gateways", Gateway, key="metal_gateways", below="/projects/{project_id}", per_page=PER_PAGE)
def document(account: Account, gateway: Gateway) -> Json:
    """A gateway. Its block is always shown whole, for a link alone is no block in the API's description."""
    return {
        "id": gateway.id,
        "href": f"{BASE}/metal-gateways/{gateway.id}",
        "state": _state(account, gateway),
        "project": link("projects", gateway.project_id),
        "virtual_network": link("virtual-networks", gateway.network_id),
        "ip_reservation": block_document(account.table(Reservation)[gateway.reservation_id]),
        "created_by": link("users", user_id(account)),
        "created_at": gateway.created_at,
        "updated_at": gateway.updated_at,
    }


def lite_document(account: Account, gateway: Gateway) -> Json:
    """A gateway as its VLAN shows it."""
    network = ipaddress.IPv4Network(account.table(Reservation)[gateway.reservation_id].network)
    return {
        "id": gateway.id,
        "href": f"{BASE}/metal-gateways/{gateway.id}",
        "state": _state(account, gateway),
        "gateway_address": f"{network[1]}/{network.prefixlen}",
        "vlan": account.table(VirtualNetwork)[gateway.network_id].vxlan,
        "created_at": gateway.created_at,
        "updated_at": gateway.updated_at,
    }


class _NewGateway(Input):
    virtual_network_id: NotBlank
    ip_reservation_id: str | None = None
    private_ipv4_subnet_size: Literal[8, 16, 32, 64, 128] | None = None

    @model_validator(mode="after")
    def _one_block(self) -> Self:
        if bool(self.ip_reservation_id) == bool(self.private_ipv4_subnet_size):
            raise problem("One of ip reservation id and private ipv4 subnet size must be given")
        return self


@operation("POST /projects/{project_id}/metal-gateways", status=201)
def create(call: Call) -> Json:
    """A gateway for a VLAN, in a block of the project's or in a new private one."""
    project, account = call.project_id, call.account
    if call.body.get("vrf_id"):
        raise NotImplementedInLab("metal gateways with VRFs")
    wanted = _NewGateway.of(call.body)
    network = _network(account, project, wanted.virtual_network_id)
    size, identity = wanted.private_ipv4_subnet_size, wanted.ip_reservation_id
    block = _private(account, network, size) if size else _public(account, network, identity or "")
    now = account.now()
    gateway = Gateway(
        id=account.chance.uuid(),
        project_id=project,
        network_id=network.id,
        reservation_id=block.id,
        created_at=now,
        updated_at=now,
    )
    block.gateway_id = gateway.id
    return document(account, account.table(Gateway).add(gateway))


@operation("DELETE /metal-gateways/{id}", status=202)
def delete(call: Call) -> Json:
    """Begin to delete a gateway; asked again, it goes on."""
    gateway, account = call.find(Gateway), call.account
    if gateway.state != "deleting":
        gateway.state, gateway.updated_at = "deleting", account.now()
        gateway.due = account.seconds() + SECONDS
        account.table(Reservation)[gateway.reservation_id].gateway_id = None
    return document(account, gateway)


def settle(account: Account) -> None:
    """Forget gateways whose deletion has ended, as it has at the latest when their block is gone."""
    table, blocks, now = account.table(Gateway), account.table(Reservation), account.seconds()
    for gateway in table.where("state", "deleting"):
        block = blocks.get(gateway.reservation_id)
        if block is None or gateway.due <= now:
            del table[gateway.id]
            if block is not None and block.type == "private_ipv4":
                del blocks[block.id]


def hasten(account: Account, project_id: str) -> None:
    """End what is being deleted of a project's now: its owner does not wait."""
    for gateway in account.table(Gateway).where("project_id", project_id):
        gateway.due = 0.0
    settle(account)


def _network(account: Account, project_id: str, identity: str) -> VirtualNetwork:
    network = account.table(VirtualNetwork).get(identity)
    if network is None or network.project_id != project_id:
        raise Unprocessable(f"Virtual network {identity} is not in this project")
    if gateway_of(account, network) is not None:
        raise Unprocessable(f"Virtual network {identity} already has a metal gateway")
    return network


def _public(account: Account, network: VirtualNetwork, identity: str) -> Reservation:
    block = account.table(Reservation).get(identity)
    if block is None or block.project_id != network.project_id:
        raise Unprocessable(f"IP reservation {identity} is not in this project")
    if block.metro != network.metro:
        raise Unprocessable(f"IP reservation {identity} is in {block.metro}, the virtual network in {network.metro}")
    if ipaddress.IPv4Network(block.network).prefixlen > SMALLEST:
        raise Unprocessable(f"IP reservation {identity} is too small: a metal gateway needs a /{SMALLEST} or larger")
    if block.gateway_id is not None:
        raise Unprocessable(f"IP reservation {identity} is in use")
    return block


def _private(account: Account, network: VirtualNetwork, size: int) -> Reservation:
    table = account.table(Reservation)
    block = lowest(PRIVATE_RANGE, size, (other.network for other in table.values()))
    if block is None:
        raise Unprocessable("There are no more private ranges available for metal gateways")
    return table.add(
        Reservation(
            id=account.chance.uuid(),
            type="private_ipv4",
            project_id=network.project_id,
            network=str(block),
            metro=network.metro,
            facility=None,
            created_at=account.now(),
        )
    )
