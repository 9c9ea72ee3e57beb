"""VLANs, and the ports of devices that are in them.

VLANs are numbered within a project and a metro. Every device has one bond of two interfaces in layer 3, which can be in
VLANs beside it (Metal calls that hybrid-bonded); the lab does not change a bond or its layer. A port has no record of
its own: its id tells which device it belongs to. Batches of assignments are carried out a little later than they were
asked for, all of them or none. What the API refuses is in our words, but for «Virtual network … not assigned», which
the official provider reads.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from lab.metal_api.body import Input
from lab.metal_api.catalog import MetroField, stable_id
from lab.metal_api.devices import BOND, GONE, PORTS, Device, port_id
from lab.metal_api.exceptions import NotFound, NotImplementedInLab, Unprocessable, error_texts
from lab.metal_api.gateways import gateway_of, lite_document
from lab.metal_api.listing import BASE, Listing, link
from lab.metal_api.networks import VirtualNetwork, VlanAssignment, networks_of
from lab.metal_api.operations import Call, links, operation, shows
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

LOWEST, HIGHEST = 2, 3999
AUTOMATIC = range(1000, 2000)
"""The range for numbers that are chosen automatically."""
SECONDS = 0.5
"""How long a batch takes, from its request on."""


@dataclass(kw_only=True)
class Wanted:
    """A wanted change of one VLAN of a port."""

    network_id: str
    vlan: int
    state: str


@saved("vlan_batches", indexed=("device_id", "state"), of_device=True)
@dataclass(kw_only=True)
class VlanBatch(Record):
    """A batch of changes to the VLANs of one bond."""

    device_id: str
    project_id: str
    wanted: list[Wanted]
    due: float
    """When it is carried out, in seconds of the epoch."""
    state: str = "queued"
    error_messages: list[str] = field(default_factory=list[str])


@shows("virtual-networks", VirtualNetwork, key="virtual_networks")
def network_document(account: Account, network: VirtualNetwork) -> Json:
    """A VLAN."""
    gateway = gateway_of(account, network)
    return {
        "vxlan": network.vxlan,
        "description": network.description,
        "tags": network.tags,
        "metro": link("locations/metros", stable_id("metro", network.metro)),
        "assigned_to": link("projects", network.project_id),
        "assigned_to_virtual_circuit": False,
        "instances": [link("devices", entry.device_id) for entry in _assignments_to(account, network)],
        "metal_gateways": [lite_document(account, gateway)] if gateway else [],
        "metro_code": network.metro,
    }


def _assignments_to(account: Account, network: VirtualNetwork) -> list[VlanAssignment]:
    return account.table(VlanAssignment).where("network_id", network.id)


class _NewNetwork(Input):
    metro: MetroField
    vxlan: int | None = None
    description: str = ""
    tags: list[str] = Field(default_factory=list[str])


@operation("POST /projects/{id}/virtual-networks", status=201)
def create_network(call: Call) -> Json:
    """A new VLAN, with the number asked for or the lowest free one."""
    project, account = call.project_id, call.account
    if call.body.get("facility"):
        raise NotImplementedInLab("virtual networks of facilities")
    wanted = _NewNetwork.of(call.body)
    metro = wanted.metro.code
    taken = {entry.vxlan for entry in networks_of(account, project) if entry.metro == metro}
    number = wanted.vxlan or next((each for each in AUTOMATIC if each not in taken), None)
    if number is None:
        raise Unprocessable(f"Vxlan can't be blank: {AUTOMATIC.start} to {AUTOMATIC.stop - 1} are all in use")
    if not LOWEST <= number <= HIGHEST:
        raise Unprocessable(f"Vxlan must be from {LOWEST} to {HIGHEST}")
    if number in taken:
        raise Unprocessable("Vxlan has already been taken")
    network = account.make(
        VirtualNetwork,
        project_id=project,
        vxlan=number,
        metro=metro,
        description=wanted.description,
        tags=wanted.tags,
    )
    return network_document(account, network)


@operation("DELETE /virtual-networks/{id}")
def delete_network(call: Call) -> None:
    """Refused as long as it is used."""
    network, problems = call.find(VirtualNetwork), list[str]()
    if _assignments_to(call.account, network):
        problems.append("Cannot delete a virtual network with ports assigned. Please unassign them first.")
    if gateway_of(call.account, network) is not None:
        problems.append("Cannot delete a virtual network with a metal gateway. Please delete it first.")
    if problems:
        raise Unprocessable(*problems)
    del call.account.table(VirtualNetwork)[network.id]


# Ports


@dataclass(frozen=True)
class Port:
    """One port of a device, by name."""

    device: Device
    name: str

    @property
    def id(self) -> str:
        return port_id(self.device.id, self.name)


def ports_of(account: Account, device: Device) -> list[Json]:
    """All ports of a device as the API shows them, the bond first."""
    return [_port_document(account, Port(device, name)) for name in PORTS]


def _port_document(account: Account, port: Port) -> Json:
    """Only bond ports have a network type, only interfaces a MAC and a bond."""
    device, name, is_bond = port.device, port.name, port.name == BOND
    assigned = assigned_to(account, device) if is_bond else []
    shown: Json = {
        "id": port.id,
        "href": f"{BASE}/ports/{port.id}",
        "name": name,
        "type": "NetworkBondPort" if is_bond else "NetworkPort",
        "disbond_operation_supported": True,
        "virtual_networks": [link("virtual-networks", entry.network_id) for entry in assigned],
        "data": {"bonded": True},
    }
    if is_bond:
        return {**shown, "network_type": "hybrid-bonded" if assigned else "layer3"}
    shown["data"]["mac"] = device.macs[name]
    return {**shown, "bond": {"id": port_id(device.id, BOND), "name": BOND}}


def assigned_to(account: Account, device: Device) -> list[VlanAssignment]:
    """The VLANs on a device's bond, in the order in which they were assigned."""
    return account.table(VlanAssignment).where("device_id", device.id)


def _port(account: Account, identity: str) -> Port:
    """By id, or NotFound."""
    try:
        number = uuid.UUID(identity).int
    except ValueError:
        raise NotFound from None
    for offset, name in enumerate(PORTS, 1):
        device = account.table(Device).get(str(uuid.UUID(int=number ^ offset)))
        if device is not None:
            return Port(device, name)
    raise NotFound


def _bond(call: Call, identity: str) -> Device:
    """The device whose bond has this id."""
    port = _port(call.account, identity)
    if port.name != BOND:
        raise NotImplementedInLab("virtual networks on other ports than the bond")
    return port.device


links("ports", lambda account, identity: _port_document(account, _port(account, identity)))


@operation("GET /ports/{id}")
def show_port(call: Call) -> Json:
    return _port_document(call.account, _port(call.account, call.id))


@operation("POST /ports/{id}/unassign")
def unassign_port(call: Call) -> Json:
    device = _bond(call, call.id)
    vnid = call.body.get("vnid")
    network = _network(call.account, device, vnid)
    _check_changeable(device)
    if not _unassign(call.account, device, network.id):
        raise Unprocessable(f"Virtual network {vnid} not assigned")
    return _port_document(call.account, Port(device, BOND))


def _network(account: Account, device: Device, vnid: object) -> VirtualNetwork:
    """The VLAN of a device's project and metro that is named by its id or by its number, as text or not."""
    for network in networks_of(account, device.project_id):
        if network.metro == device.metro and str(vnid) in (network.id, str(network.vxlan)):
            return network
    raise Unprocessable(f"Virtual network {vnid} is not in this project and in {device.metro}")


def _check_changeable(device: Device) -> None:
    if device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")


def _assign(account: Account, device: Device, network: VirtualNetwork) -> None:
    if all(entry.network_id != network.id for entry in assigned_to(account, device)):
        account.make(VlanAssignment, device_id=device.id, network_id=network.id)


def _unassign(account: Account, device: Device, network_id: str) -> bool:
    """Whether there was something to do."""
    found = [entry for entry in assigned_to(account, device) if entry.network_id == network_id]
    for entry in found:
        del account.table(VlanAssignment)[entry.id]
    return bool(found)


# Batches


class _WantedVlan(Input):
    vlan: str | int
    state: Literal["assigned", "unassigned"] = "assigned"
    native: bool | None = None


class _NewBatch(Input):
    vlan_assignments: list[_WantedVlan] = Field(min_length=1)


def _batch_document(batch: VlanBatch) -> Json:
    """The ids in a batch are the VLANs', as packngo says."""
    return {
        "id": batch.id,
        "state": batch.state,
        "quantity": len(batch.wanted),
        "error_messages": batch.error_messages,
        "vlan_assignments": [
            {"id": wanted.network_id, "vlan": wanted.vlan, "state": wanted.state, "native": False}
            for wanted in batch.wanted
        ],
        "port": link("ports", port_id(batch.device_id, BOND)),
        "project": link("projects", batch.project_id),
        "created_at": batch.created_at,
        "updated_at": batch.updated_at,
    }


@operation("GET /ports/{id}/vlan-assignments/batches")
def list_batches(call: Call) -> Listing:
    found = call.account.table(VlanBatch).where("device_id", _bond(call, call.id).id)
    return Listing(name="batches", entries=found, shown=_batch_document, per_page=None)


@operation("POST /ports/{id}/vlan-assignments/batches", status=201)
def create_batch(call: Call) -> Json:
    """Errors are reported when the batch is carried out, except for VLANs that do not exist."""
    device, account = _bond(call, call.id), call.account
    asked = _NewBatch.of(call.body).vlan_assignments
    if any(entry.native for entry in asked):
        raise NotImplementedInLab("native virtual networks")
    networks = [(_network(account, device, entry.vlan), entry.state) for entry in asked]
    batch = account.make(
        VlanBatch,
        device_id=device.id,
        project_id=device.project_id,
        wanted=[Wanted(network_id=network.id, vlan=network.vxlan, state=state) for network, state in networks],
        due=account.seconds() + SECONDS,
    )
    return _batch_document(batch)


@operation("GET /ports/{id}/vlan-assignments/batches/{batch_id}")
def show_batch(call: Call) -> Json:
    return _batch_document(call.account.table(VlanBatch).find(call.id))


def settle(account: Account) -> None:
    """Carry out what is due, show that the rest is on its way."""
    table, now = account.table(VlanBatch), account.seconds()
    for batch in [*table.where("state", "queued"), *table.where("state", "in_progress")]:
        if batch.due <= now:
            _carry_out(account, batch)
        elif batch.state != "in_progress":  # what is assigned is written, and this is asked at every request
            batch.state = "in_progress"


def _carry_out(account: Account, batch: VlanBatch) -> None:
    """Unlike a request about one VLAN, a batch says what is to be, which may be so already."""
    device = account.table(Device)[batch.device_id]
    before = assigned_to(account, device)
    try:
        _check_changeable(device)
        for wanted in batch.wanted:
            if wanted.state == "assigned":
                _assign(account, device, account.table(VirtualNetwork).find(wanted.network_id))
            else:
                _unassign(account, device, wanted.network_id)
    except Exception as error:  # whatever it is: who asks for something else now is not to hear of it
        batch.error_messages = error_texts(error)
        for entry in assigned_to(account, device):
            del account.table(VlanAssignment)[entry.id]
        for entry in before:
            account.table(VlanAssignment).add(entry)
    batch.updated_at = account.now()
    batch.state = "failed" if batch.error_messages else "completed"
