"""Metal gateways: Metal's routers' address in a VLAN, out of a private block that is made for it.

VLANs of the lab carry no traffic: a gateway is a record and nothing more. One that is being deleted has let go of its
VLAN at once, for the official provider deletes that without waiting for it. The API's own words for what it refuses
here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

from lab.metal_api.access import user_id
from lab.metal_api.addresses import Reservation, lowest
from lab.metal_api.body import Input, NotBlank
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.ips import block_document
from lab.metal_api.listing import PER_PAGE, head, link
from lab.metal_api.networks import VirtualNetwork, VlanAssignment
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

PRIVATE_RANGE = "10.64.0.0/10"
"""The range of private blocks; it is not routed."""
SECONDS = 0.5
"""How long it takes to delete one."""


@saved("gateways", indexed=("project_id", "network_id", "state"))
@dataclass(kw_only=True)
class Gateway(Record):
    """A gateway of a VLAN."""

    project_id: str
    network_id: str
    reservation_id: str
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
    """A gateway. Its block is always shown whole, for a link alone is not a block in the API's description."""
    return {
        "state": _state(account, gateway),
        "project": link("projects", gateway.project_id),
        "virtual_network": link("virtual-networks", gateway.network_id),
        "ip_reservation": block_document(account.table(Reservation)[gateway.reservation_id]),
        "created_by": link("users", user_id(account)),
    }


def lite_document(account: Account, gateway: Gateway) -> Json:
    """A gateway as its VLAN shows it."""
    network = ipaddress.IPv4Network(account.table(Reservation)[gateway.reservation_id].network)
    return head("metal-gateways", gateway) | {
        "state": _state(account, gateway),
        "gateway_address": f"{network[1]}/{network.prefixlen}",
        "vlan": account.table(VirtualNetwork)[gateway.network_id].vxlan,
    }


class _NewGateway(Input):
    virtual_network_id: NotBlank
    private_ipv4_subnet_size: Literal[8, 16, 32, 64, 128]


@operation("POST /projects/{project_id}/metal-gateways", status=201)
def create(call: Call) -> Json:
    """A gateway for a VLAN, in a new private block."""
    project, account = call.project_id, call.account
    for name in ("vrf_id", "ip_reservation_id"):
        if call.body.get(name):
            raise NotImplementedInLab(f"metal gateways with {name}")
    wanted = _NewGateway.of(call.body)
    network = _network(account, project, wanted.virtual_network_id)
    block = _block(account, network, wanted.private_ipv4_subnet_size)
    gateway = account.make(Gateway, project_id=project, network_id=network.id, reservation_id=block.id)
    return document(account, gateway)


@operation("DELETE /metal-gateways/{id}", status=202)
def delete(call: Call) -> Json:
    """Begin to delete a gateway; asked again, it goes on."""
    gateway, account = call.find(Gateway), call.account
    if gateway.state != "deleting":
        gateway.state, gateway.updated_at = "deleting", account.now()
        gateway.due = account.seconds() + SECONDS
    return document(account, gateway)


def settle(account: Account) -> None:
    """Forget gateways whose deletion has ended, and their blocks."""
    for gateway in account.table(Gateway).where("state", "deleting"):
        if gateway.due <= account.seconds():
            del account.table(Gateway)[gateway.id]
            del account.table(Reservation)[gateway.reservation_id]


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


def _block(account: Account, network: VirtualNetwork, size: int) -> Reservation:
    block = lowest(PRIVATE_RANGE, size, (other.network for other in account.table(Reservation).values()))
    if block is None:
        raise Unprocessable("There are no more private ranges available for metal gateways")
    return account.make(
        Reservation,
        type="private_ipv4",
        project_id=network.project_id,
        network=str(block),
        metro=network.metro,
        facility=None,
    )
