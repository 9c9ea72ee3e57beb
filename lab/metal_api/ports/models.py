"""A device's ports: which of them make its bond, whether the bond has layer 3, and what VLANs are on them.

Every device starts with one bond of two interfaces in layer 3. What differs from that is saved in a record of the
device's (`devices.network`); a port has none of its own, and its id tells which device it belongs to.

The API's words are the official provider's where it reads them («Virtual network … not assigned»), others are ours.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lab.metal_api.devices.models import GONE, Device, add_event
from lab.metal_api.devices.network import BOND, INTERFACES, NAMES, DeviceNetwork, network_of, port_id
from lab.metal_api.exceptions import NotFound, Unprocessable
from lab.metal_api.ips.models import unassign_all
from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork, named


@saved("vlan_assignments", indexed=("device_id", "network_id"))
@dataclass(kw_only=True)
class VlanAssignment(Record):
    """A VLAN on a port."""

    id: str
    device_id: str
    port: str
    """Its name."""
    network_id: str
    created_at: str
    updated_at: str
    native: bool = False


@dataclass(frozen=True)
class Port:
    """One port of a device, by name."""

    device: Device
    name: str

    @property
    def id(self) -> str:
        return port_id(self.device.id, self.name)

    @property
    def is_bond(self) -> bool:
        return self.name == BOND


def find(account: Account, identity: str) -> Port:
    """A port by id, or NotFound."""
    try:
        number = uuid.UUID(identity).int
    except ValueError:
        raise NotFound from None
    for offset, name in enumerate(NAMES, 1):
        device = account.table(Device).get(str(uuid.UUID(int=number ^ offset)))
        if device is not None:
            return Port(device, name)
    raise NotFound


def assignments_of(account: Account, device: Device, port: str | None = None) -> list[VlanAssignment]:
    """The VLANs on a device's ports, or on one of them, in the order in which they were assigned."""
    found = account.table(VlanAssignment).where("device_id", device.id)
    return [entry for entry in found if port in (None, entry.port)]


def is_bonded(account: Account, port: Port) -> bool:
    """Whether an interface is in the bond, or the bond has members."""
    members = network_of(account, port.device).members
    return bool(members) if port.is_bond else port.name in members


def network_type(account: Account, device: Device) -> str:
    """The one word that Metal has for all of it."""
    network = network_of(account, device)
    whole = len(network.members) == len(INTERFACES)
    if network.layer2:
        return "layer2-bonded" if whole else "layer2-individual"
    if not whole:
        return "hybrid"
    return "hybrid-bonded" if assignments_of(account, device, BOND) else "layer3"


def bond(account: Account, port: Port, *, both: bool) -> None:
    """Put an interface into the bond; the bond port, or `both`, means all of them. No error if they are in it."""
    network = _changeable(account, port)
    joining = INTERFACES if both or port.is_bond else (port.name,)
    for name in joining:
        if name not in network.members and assignments_of(account, port.device, name):
            raise Unprocessable(f"Port {name} has virtual networks assigned. Please unassign them first.")
    network.members = [name for name in INTERFACES if name in network.members or name in joining]


def disbond(account: Account, port: Port, *, both: bool) -> None:
    """Take an interface out of the bond, but not the last one; the bond port, or `both`, means all of them."""
    network = _changeable(account, port)
    everything = both or port.is_bond
    staying = [name for name in network.members if not everything and name != port.name]
    if not staying and network.members:
        if not everything:
            raise Unprocessable(f"Port {port.name} is the last member of {BOND} and cannot be removed from it")
        if assignments_of(account, port.device, BOND):
            raise Unprocessable(f"Port {BOND} has virtual networks assigned. Please unassign them first.")
    network.members = staying


def to_layer2(account: Account, port: Port) -> None:
    """Take the bond's layer 3 away: its addresses and the elastic ones that are assigned to the device."""
    _require_bond_port(port)
    network = _changeable(account, port)
    if network.layer2:
        raise Unprocessable(f"Port {BOND} is already in layer 2")
    network.layer2 = True
    add_event(account, port.device, "port.layer2", f"Network of {port.device.hostname} converted to layer 2")
    unassign_all(account, port.device)


def to_layer3(account: Account, port: Port, wanted: object) -> None:
    """Give the bond layer 3 again, with the addresses of `wanted` (`request_ips`): all if there are none."""
    _require_bond_port(port)
    network = _changeable(account, port)
    if not network.layer2:
        raise Unprocessable(f"Port {BOND} is already in layer 3")
    if not network.members:
        raise Unprocessable(f"Port {BOND} is not bonded. Please bond it first.")
    if assignments_of(account, port.device, BOND):
        raise Unprocessable(f"Port {BOND} has virtual networks assigned. Please unassign them first.")
    network.public = _asks_for_public(wanted)
    network.layer2 = False
    add_event(account, port.device, "port.layer3", f"Network of {port.device.hostname} converted to layer 3")
    account.routes_changed()


def assign(account: Account, port: Port, vnid: object) -> VlanAssignment:
    """Put a VLAN of the device's project and place on a port that carries traffic of its own."""
    _check_changeable(port)
    network = find_network(account, port, vnid)
    if network.facility not in (None, port.device.facility):
        raise Unprocessable(f"Virtual network {vnid} is in {network.facility}, the device is elsewhere")
    if is_bonded(account, port) != port.is_bond:
        state = "not bonded" if port.is_bond else f"a member of {BOND}"
        raise Unprocessable(f"Port {port.name} is {state}: no virtual network can be assigned to it")
    if any(entry.network_id == network.id for entry in assignments_of(account, port.device, port.name)):
        raise Unprocessable(f"Virtual network {vnid} already assigned")
    now = account.now()
    return account.table(VlanAssignment).add(
        VlanAssignment(
            id=account.chance.uuid(),
            device_id=port.device.id,
            port=port.name,
            network_id=network.id,
            created_at=now,
            updated_at=now,
        )
    )


def unassign(account: Account, port: Port, vnid: object) -> None:
    """Take a VLAN off a port; a native one must be an ordinary one before."""
    entry = _assigned(account, port, vnid)
    if entry.native:
        raise Unprocessable(f"Virtual network {vnid} is the native VLAN of port {port.name}. Please remove it first.")
    del account.table(VlanAssignment)[entry.id]


def set_native(account: Account, port: Port, vnid: object) -> None:
    """Have a VLAN's frames untagged: one of at least two on the port, where no layer 3 has the untagged frames."""
    entry = _assigned(account, port, vnid)
    entries = assignments_of(account, port.device, port.name)
    if len(entries) < 2:
        raise Unprocessable("Native VLAN can only be set if more than one virtual network is assigned to the port")
    if port.is_bond and not network_of(account, port.device).layer2:
        raise Unprocessable(f"Native VLAN cannot be set on port {BOND} in layer 3")
    for other in entries:
        if other.native != (other is entry):
            other.native, other.updated_at = other is entry, account.now()


def remove_native(account: Account, port: Port) -> None:
    """Have all of a port's VLANs tagged again."""
    _check_changeable(port)
    entries = [entry for entry in assignments_of(account, port.device, port.name) if entry.native]
    if not entries:
        raise Unprocessable(f"Port {port.name} has no native VLAN")
    entries[0].native, entries[0].updated_at = False, account.now()


def find_network(account: Account, port: Port, vnid: object) -> VirtualNetwork:
    """The VLAN that a request about a port names."""
    metro = port.device.metro
    network = named(account, port.device.project_id, metro, vnid)
    if network is None:
        raise Unprocessable(f"Virtual network {vnid} is not in this project and in {metro}")
    return network


def _assigned(account: Account, port: Port, vnid: object) -> VlanAssignment:
    _check_changeable(port)
    network = find_network(account, port, vnid)
    for entry in assignments_of(account, port.device, port.name):
        if entry.network_id == network.id:
            return entry
    raise Unprocessable(f"Virtual network {vnid} not assigned")


def _check_changeable(port: Port) -> None:
    if port.device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")
    if port.device.network_frozen:
        raise Unprocessable("Network of this device is frozen and cannot be changed")


def _changeable(account: Account, port: Port) -> DeviceNetwork:
    """The device's record, made if it has none yet; refused if its network must stay as it is."""
    _check_changeable(port)
    table = account.table(DeviceNetwork)
    return table.get(port.device.id) or table.add(DeviceNetwork(id=port.device.id))


def _require_bond_port(port: Port) -> None:
    if not port.is_bond:
        raise Unprocessable(f"Port {port.name} is not a bond port")


def _asks_for_public(wanted: object) -> bool:
    """Whether a public address is asked for; a private one must be. The lab has no IPv6: it is not given."""
    if wanted is None:
        return True
    entries = wanted if isinstance(wanted, list) else [None]
    families: set[tuple[object, object]] = set()
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("address_family") not in (4, 6):
            raise Unprocessable("Request ips must be a list of objects with address_family (4 or 6) and public")
        families.add((entry["address_family"], entry.get("public", True)))
    if (4, False) not in families:
        raise Unprocessable("Private IPv4 address is required")
    return (4, True) in families
