"""The lab's own routes on the API host, outside /metal/v1, for the lab's own token.

POST, GET, DELETE /lab/faults                   misbehaviour: see `faults`
PUT               /lab/capacity                 {metro, plan, servers?}: what there is to order
POST              /lab/hardware-reservations    {plan, facility, id?}: sell a server
POST              /lab/spot-evictions           {id, seconds?}: end a spot device
GET               /lab/inventory, /lab/requests what exists, and what was asked
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab.metal_api import faults
from lab.metal_api.access import Project
from lab.metal_api.addresses import Reservation
from lab.metal_api.devices import Device
from lab.metal_api.faults import Fault
from lab.metal_api.gateways import Gateway
from lab.metal_api.networks import VirtualNetwork
from lab.metal_api.operations import Call, operation
from lab.metal_api.records import Json, Record, to_json
from lab.metal_api.routing import BgpSession
from lab.metal_api.spot_market import SpotMarketRequest
from lab.metal_api.ssh_keys import SshKey

_LISTED: tuple[tuple[str, type[Record], Callable[[Any], Json]], ...] = (
    (
        "devices",
        Device,
        lambda each: {
            "hostname": each.hostname,
            "state": each.state,
            "project_id": each.project_id,
            "tags": each.tags,
            "addresses": each.own_addresses,
        },
    ),
    ("ssh_keys", SshKey, lambda each: {"label": each.label, "project_id": each.project_id}),
    ("projects", Project, lambda each: {"name": each.name}),
    (
        "reservations",
        Reservation,
        lambda each: {"name": each.network, "project_id": each.project_id, "tags": each.tags},
    ),
    ("bgp_sessions", BgpSession, lambda each: {"name": "ipv4", "device_id": each.device_id}),
    (
        "virtual_networks",
        VirtualNetwork,
        lambda each: {"name": f"{each.metro}/{each.vxlan}", "project_id": each.project_id},
    ),
    ("gateways", Gateway, lambda each: {"name": each.state, "project_id": each.project_id}),
    ("spot_market_requests", SpotMarketRequest, lambda each: {"name": each.plan, "project_id": each.project_id}),
    ("faults", Fault, to_json),
)
"""Name in the inventory, kind, and what is told of each beside its id."""


@operation("POST /lab/faults", status=201)
def add_fault(call: Call) -> Json:
    return to_json(faults.add_fault(call.account, call.body))


@operation("GET /lab/faults")
def list_faults(call: Call) -> Json:
    return {"faults": [to_json(fault) for fault in call.account.table(Fault).values()]}


@operation("DELETE /lab/faults")
def clear_faults(call: Call) -> None:
    call.account.table(Fault).clear()


@operation("GET /lab/inventory")
def inventory(call: Call) -> Json:
    """What exists now; a lab that was cleaned up shows empty lists: the default project is not among them."""
    default = call.account.identity.project_id
    return {
        name: [
            {"id": record.id, **told(record)} for record in call.account.table(kind).values() if record.id != default
        ]
        for name, kind, told in _LISTED
    }


@operation("GET /lab/requests")
def requests(call: Call) -> Json:
    return call.lab.log.shown()
