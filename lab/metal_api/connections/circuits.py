"""Virtual circuits: a VLAN of a project's on a port of an interconnection.

On dedicated ports they are made and deleted at will; those of shared interconnections come and go with these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.metal_api.body import Body
from lab.metal_api.connections import speeds
from lab.metal_api.connections.models import SECONDS, Connection, ConnectionPort
from lab.metal_api.events.models import note
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork, named

LOWEST_NNI, HIGHEST_NNI = 2, 4094
WAITING = "waiting_on_customer_vlan"
_OF_VRFS = (
    *("vrf", "vrf_id", "peer_asn", "md5", "subnet", "subnet_ipv6"),
    *("metal_ip", "metal_ipv6", "customer_ip", "customer_ipv6"),
)
_NEXT = {"activating": "active", "changing_vlan": "active", "deactivating": WAITING}
"""What becomes of a status by itself."""


@saved("virtual_circuits", indexed=("project_id", "connection_id", "port_id", "network_id", "status"))
@dataclass(kw_only=True)
class VirtualCircuit(Record):
    """A circuit through a port, with or without a VLAN."""

    id: str
    project_id: str
    connection_id: str
    port_id: str
    name: str
    created_at: str
    updated_at: str
    nni_vlan: int | None = None
    network_id: str | None = None
    speed: int | None = None
    status: str = "pending"
    due: float = 0.0
    """When a status that passes by itself ends, in seconds of the epoch."""
    description: str = ""
    tags: list[str] = field(default_factory=list[str])


def vnid_of(account: Account, circuit: VirtualCircuit) -> int | None:
    """The number of the VLAN on a circuit."""
    network = account.table(VirtualNetwork).get(circuit.network_id or "")
    return network.vxlan if network else None


def circuits_of(account: Account, connection: Connection, port: ConnectionPort | None = None) -> list[VirtualCircuit]:
    """The circuits of an interconnection, or of one of its ports, oldest first."""
    if port is not None:
        return account.table(VirtualCircuit).where("port_id", port.id)
    return account.table(VirtualCircuit).where("connection_id", connection.id)


def networks_for(account: Account, connection: Connection, vlans: object) -> list[VirtualNetwork]:
    """The VLANs that a shared interconnection is asked for with, for its ports in their order."""
    if not vlans:
        return []
    if not connection.is_shared or not isinstance(vlans, list) or len(vlans) > len(connection.ports):
        raise Unprocessable(f"Vlans must be a list of at most {len(connection.ports)} of a shared interconnection")
    return [_network(account, str(connection.project_id), connection.metro, entry) for entry in vlans]


def provide(account: Account, connection: Connection, networks: list[VirtualNetwork]) -> None:
    """The circuits that a shared interconnection has from the start."""
    for number, port in enumerate(connection.ports if connection.is_shared else []):
        network = networks[number].id if number < len(networks) else None
        name = f"{connection.name} {port.role}"
        _add(account, connection, port, str(connection.project_id), name=name, network_id=network)


def create(
    account: Account, connection: Connection, port: ConnectionPort, project_id: str, document: Json
) -> VirtualCircuit:
    """A circuit on a dedicated port. Reports every problem at once."""
    body = Body(document)
    _refuse_vrf(document)
    nni, name = body.integer("nni_vlan"), body.text("name")
    description, tags, speed = body.text("description"), body.texts("tags"), _speed(body)
    if connection.is_shared:
        body.problems.append("Virtual circuits can be created on dedicated ports only")
    if connection.status != "active":
        body.problems.append(f"Interconnection is {connection.status}")
    if nni is not None and not LOWEST_NNI <= nni <= HIGHEST_NNI:
        body.problems.append(f"Nni vlan must be from {LOWEST_NNI} to {HIGHEST_NNI}")
    if nni is not None and any(circuit.nni_vlan == nni for circuit in circuits_of(account, connection, port)):
        body.problems.append("Nni vlan has already been taken")
    body.check()
    vnid = document.get("vnid")
    network = _network(account, project_id, connection.metro, vnid) if vnid else None
    circuit = _add(
        account,
        connection,
        port,
        project_id,
        name=name or f"{connection.name} {port.role}",
        nni_vlan=nni,
        network_id=network.id if network else None,
        speed=speed,
        description=description or "",
        tags=tags or [],
    )
    _go(account, circuit, "pending" if nni is None else "activating" if network else WAITING)
    return circuit


def update(account: Account, circuit: VirtualCircuit, metro: str, document: Json) -> None:
    """Change the fields that are given; `vnid` puts another VLAN on it, or none if it is empty."""
    body = Body(document)
    _refuse_vrf(document)
    name, description, tags, speed = body.text("name"), body.text("description"), body.texts("tags"), _speed(body)
    body.check()
    if circuit.status == "deleting":
        raise Unprocessable("Virtual circuit is being deleted")
    if "vnid" in document:
        vnid = document["vnid"]
        network = _network(account, circuit.project_id, metro, vnid) if vnid else None
        _connect(account, circuit, network.id if network else None)
    circuit.name = name or circuit.name
    circuit.description = circuit.description if description is None else description
    circuit.tags = circuit.tags if tags is None else tags
    circuit.speed = speed or circuit.speed
    circuit.updated_at = account.now()


def delete(account: Account, circuit: VirtualCircuit) -> None:
    """Begin to delete a circuit of a dedicated port; asked again, it goes on."""
    connection = account.table(Connection).find(circuit.connection_id)
    if connection.is_shared:
        raise Unprocessable("Virtual circuits of shared interconnections are deleted with these")
    if circuit.status != "deleting":
        _go(account, circuit, "deleting")


def hasten(account: Account, project_id: str) -> None:
    """End what is being deleted of a project's now: its owner does not wait."""
    for circuit in account.table(VirtualCircuit).where("project_id", project_id):
        if circuit.status == "deleting":
            circuit.due = 0.0
    settle(account)


def settle(account: Account) -> None:
    """Bring circuits on: what is due, what was redeemed, and what is deleted or whose interconnection is gone."""
    table, now = account.table(VirtualCircuit), account.clock.now().timestamp()
    connections = account.table(Connection)
    for circuit in list(table.values()):
        connection = connections.get(circuit.connection_id)
        if connection is None or (circuit.status == "deleting" and circuit.due <= now):
            del table[circuit.id]
        elif connection.status == "deleting" and circuit.status != "deleting":
            _go(account, circuit, "deleting")
        elif circuit.status == "pending" and connection.is_shared and connection.status == "active":
            _go(account, circuit, "activating" if circuit.network_id else WAITING)
        elif circuit.status in _NEXT and circuit.due <= now:
            _go(account, circuit, _NEXT[circuit.status])


def _connect(account: Account, circuit: VirtualCircuit, network_id: str | None) -> None:
    """Put another VLAN on a circuit; one that still waits for the other side goes on waiting."""
    before, circuit.network_id = circuit.network_id, network_id
    if circuit.status == "pending" or before == network_id:
        return
    if network_id is None:
        _go(account, circuit, "deactivating")
    else:
        _go(account, circuit, "changing_vlan" if circuit.status == "active" else "activating")


def _go(account: Account, circuit: VirtualCircuit, status: str) -> None:
    circuit.status, circuit.updated_at = status, account.now()
    circuit.due = account.clock.now().timestamp() + SECONDS
    about, text = [f"virtual-circuits/{circuit.id}"], f"Virtual circuit {circuit.name} is {status}"
    note(account, f"virtual_circuit.{status}", text, project_id=circuit.project_id, state=status, about=about)


def _add(
    account: Account, connection: Connection, port: ConnectionPort, project_id: str, **fields: object
) -> VirtualCircuit:
    now = account.now()
    values: Json = {"id": account.chance.uuid(), "created_at": now, "updated_at": now, **fields}
    return account.table(VirtualCircuit).add(
        VirtualCircuit(project_id=project_id, connection_id=connection.id, port_id=port.id, **values)
    )


def _refuse_vrf(document: Json) -> None:
    if any(document.get(name) for name in _OF_VRFS):
        raise NotImplementedInLab("virtual circuits with VRFs")


def _network(account: Account, project_id: str, metro: str, vnid: object) -> VirtualNetwork:
    network = named(account, project_id, metro, vnid)
    if network is None or network.facility is not None:
        raise Unprocessable(f"Virtual network {vnid} is not in this project and in {metro}")
    return network


def _speed(body: Body) -> int | None:
    value = body.document.get("speed")
    if value in (None, ""):
        return None
    speed = speeds.parse(value)
    if speed is None:
        body.problems.append("Speed is not a number of bits per second, with or without a unit")
    return speed
