"""Metal gateways: Metal's routers' address in a VLAN, out of a block of the project's or of a private one made for it.

VLANs of the lab carry no traffic: a gateway is a record and nothing more. One that is being deleted has let go of its
VLAN and its block at once, for the official provider deletes these without waiting for it. The API's own words for what
it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from lab.metal_api.body import Body
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.ips.addresses import lowest
from lab.metal_api.ips.models import (
    Reservation,
    assigned_from,
)
from lab.metal_api.ports.models import VlanAssignment
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork

SUBNET_SIZES = (8, 16, 32, 64, 128)
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


def gateways_of(account: Account, project_id: str) -> list[Gateway]:
    """A project's gateways, in the order in which they were made."""
    return account.table(Gateway).where("project_id", project_id)


def gateway_of(account: Account, network: VirtualNetwork) -> Gateway | None:
    """The gateway of a VLAN."""
    found = account.table(Gateway).where("network_id", network.id)
    return next((gateway for gateway in found if gateway.state != "deleting"), None)


def address_of(account: Account, gateway: Gateway) -> str:
    """Its own address, the first of its block, with the prefix."""
    network = ipaddress.IPv4Network(account.table(Reservation)[gateway.reservation_id].network)
    return f"{network[1]}/{network.prefixlen}"


def state_of(account: Account, gateway: Gateway) -> str:
    """`active` as soon as a port is in its VLAN."""
    used = account.table(VlanAssignment).where("network_id", gateway.network_id)
    return "active" if gateway.state == "ready" and used else gateway.state


def create(account: Account, project_id: str, document: Json) -> Gateway:
    """A gateway for a VLAN, in a block of the project's or in a new private one."""
    body = Body(document)
    identity = body.text("virtual_network_id", required=True) or ""
    wanted, size = body.text("ip_reservation_id"), body.integer("private_ipv4_subnet_size")
    if bool(wanted) == bool(size):
        body.problems.append("One of ip reservation id and private ipv4 subnet size must be given")
    elif size and size not in SUBNET_SIZES:
        body.problems.append(f"Private ipv4 subnet size must be one of {', '.join(map(str, SUBNET_SIZES))}")
    body.check()
    network = _network(account, project_id, identity)
    block = _public(account, network, wanted) if wanted else _private(account, network, size or 0)
    now = account.now()
    gateway = account.table(Gateway).add(
        Gateway(
            id=account.chance.uuid(),
            project_id=project_id,
            network_id=network.id,
            reservation_id=block.id,
            created_at=now,
            updated_at=now,
        )
    )
    block.gateway_id = gateway.id
    return gateway


def delete(account: Account, gateway: Gateway) -> None:
    """Begin to delete a gateway; asked again, it goes on."""
    if gateway.state == "deleting":
        return
    gateway.state, gateway.updated_at = "deleting", account.now()
    gateway.due = account.clock.now().timestamp() + SECONDS
    account.table(Reservation)[gateway.reservation_id].gateway_id = None


def settle(account: Account) -> None:
    """Forget gateways whose deletion has ended, as it has at the latest when their block is gone."""
    table, blocks, now = account.table(Gateway), account.table(Reservation), account.clock.now().timestamp()
    for gateway in table.where("state", "deleting"):
        block = blocks.get(gateway.reservation_id)
        if block is None or gateway.due <= now:
            del table[gateway.id]
            if block is not None and block.type == "private_ipv4":
                del blocks[block.id]


def hasten(account: Account, project_id: str) -> None:
    """End what is being deleted of a project's now: its owner does not wait."""
    for gateway in gateways_of(account, project_id):
        if gateway.state == "deleting":
            gateway.due = 0.0
    settle(account)


def _network(account: Account, project_id: str, identity: str) -> VirtualNetwork:
    network = account.table(VirtualNetwork).get(identity)
    if network is None or network.project_id != project_id:
        raise Unprocessable(f"Virtual network {identity} is not in this project")
    if network.facility is not None:
        raise Unprocessable(f"Virtual network {identity} is a facility's: a gateway needs one of a metro")
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
    if block.gateway_id is not None or assigned_from(account, block.id):
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
