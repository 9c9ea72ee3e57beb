"""Interconnections: records and rules.

Dedicated ones become active a little after they were asked for, as if the facility's staff had approved them. Shared
ones wait for their token to be redeemed in Fabric, which a control route stands for. VRFs are absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import FACILITIES, METROS, named
from lab.metal_api.connections import speeds
from lab.metal_api.events.models import note
from lab.metal_api.exceptions import NotFound, NotImplementedInLab, Unprocessable
from lab.metal_api.places import place
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.sources import timestamp
from lab.metal_api.state import Account

TYPES = ("dedicated", "shared", "shared_port_vlan")
ROLES = ("primary", "secondary")
SECONDS = 0.5
"""How long the facility takes for anything."""
TOKEN_DAYS = 7


@dataclass(kw_only=True)
class ConnectionPort:
    """One end of an interconnection."""

    id: str
    role: str
    name: str


@dataclass(kw_only=True)
class ServiceToken:
    """What is redeemed in Fabric."""

    id: str
    role: str
    side: str
    """a_side or z_side."""
    speed: int
    expires_at: str


@saved("connections", indexed=("project_id", "status"))
@dataclass(kw_only=True)
class Connection(Record):
    """An interconnection, with its ports."""

    id: str
    project_id: str | None
    """Only of shared ones: a dedicated port is the organization's."""
    name: str
    type: str
    redundancy: str
    metro: str
    facility: str | None
    speed: int
    mode: str | None
    """Only of dedicated ones."""
    contact_email: str
    created_at: str
    updated_at: str
    ports: list[ConnectionPort]
    tokens: list[ServiceToken]
    token: str | None = None
    """Of a shared one that was asked for in the old way, without service tokens."""
    description: str = ""
    tags: list[str] = field(default_factory=list[str])
    status: str = "pending"
    """`pending`, `active` or `deleting`."""
    due: float = 0.0
    """When that ends, in seconds of the epoch."""

    @property
    def is_shared(self) -> bool:
        """Whether its virtual circuits are there from the start, one per port."""
        return self.type != "dedicated"


def find_port(connection: Connection, identity: str) -> ConnectionPort:
    """A port of an interconnection by id, or NotFound."""
    for port in connection.ports:
        if port.id == identity:
            return port
    raise NotFound


def port_status(connection: Connection) -> str:
    """What became of its ports."""
    return {"pending": "requested"}.get(connection.status, connection.status)


def create(account: Account, project_id: str | None, document: Json) -> Connection:
    """A new interconnection, asked for by a project or by the organization, not yet added to the account."""
    body = Body(document)
    kind = str(document.get("type"))
    if kind == "shared_port_vlan_to_csp" or document.get("fabric_provider") or document.get("vrfs"):
        raise NotImplementedInLab("interconnections with cloud providers and with VRFs")
    name, _ = body.text("name", required=True), body.choice("type", TYPES, required=True)
    redundancy = body.choice("redundancy", ("primary", "redundant"), required=kind != "shared_port_vlan") or "primary"
    metro, facility = place(body)
    wanted = body.text("facility_id")
    there = named(FACILITIES, wanted)
    if wanted and (there is None or there.metro != metro):
        body.problems.append(f"Facility {wanted} is not in metro {metro}")
    facility = there.code if there else facility
    project_id = project_id if kind != "dedicated" else None
    if kind != "dedicated" and project_id is None:
        body.problems.append("Project can't be blank for shared interconnections")
    mode = body.choice("mode", ("standard", "tunnel"))
    if kind != "dedicated" and mode == "tunnel":
        body.problems.append("Mode tunnel is for dedicated interconnections only")
    side = body.choice("service_token_type", ("a_side", "z_side"))
    if side and kind != "shared":
        body.problems.append("Service token type is for shared interconnections only")
    speed = _speed(body, kind, side)
    description, tags, contact = body.text("description"), body.texts("tags"), body.text("contact_email")
    for ignored in ("billing_account_name", "use_case"):
        body.text(ignored)
    body.check()
    roles = ROLES[: 2 if redundancy == "redundant" else 1]
    now = account.clock.now()
    connection = Connection(
        id=account.chance.uuid(),
        project_id=project_id,
        name=name or "",
        type=kind,
        redundancy=redundancy,
        metro=metro,
        facility=facility,
        speed=speed,
        mode=(mode or "standard") if kind == "dedicated" else None,
        contact_email=contact or "lab@facility.test",
        created_at=timestamp(now),
        updated_at=timestamp(now),
        ports=[
            ConnectionPort(id=account.chance.uuid(), role=role, name=f"{METROS[metro].name} {role}") for role in roles
        ],
        tokens=[
            ServiceToken(
                id=account.chance.uuid(),
                role=role,
                side=side,
                speed=speed,
                expires_at=timestamp(now + timedelta(days=TOKEN_DAYS)),
            )
            for role in roles
            if side
        ],
        token=account.chance.uuid() if kind == "shared" and not side else None,
        description=description or "",
        tags=tags or [],
        due=now.timestamp() + SECONDS,
    )
    _tell(account, connection, "requested")
    return connection


def update(account: Account, connection: Connection, document: Json, *, has_circuits: bool) -> None:
    """Change the fields that are given; the mode only while no virtual circuit is there."""
    body = Body(document)
    name, description, contact = body.text("name"), body.text("description"), body.text("contact_email")
    tags, mode = body.texts("tags"), body.choice("mode", ("standard", "tunnel"))
    redundancy = body.choice("redundancy", ("primary", "redundant"))
    if mode not in (None, connection.mode):
        if connection.mode is None:
            body.problems.append("Mode is for dedicated interconnections only")
        elif has_circuits:
            body.problems.append("Mode cannot be changed while there are virtual circuits. Please delete them first.")
    if redundancy not in (None, connection.redundancy):
        body.problems.append("Redundancy cannot be changed in the lab")
    body.check()
    connection.name = name or connection.name
    connection.description = connection.description if description is None else description
    connection.contact_email = contact or connection.contact_email
    connection.tags = connection.tags if tags is None else tags
    connection.mode = mode or connection.mode
    connection.updated_at = account.now()


def redeem(account: Account, connection: Connection) -> None:
    """What its user would do in Fabric: have it connected."""
    if not connection.is_shared or connection.status != "pending":
        raise Unprocessable(f"Interconnection {connection.id} is {connection.type} and {connection.status}")
    _activate(account, connection)


def begin_deletion(account: Account, connection: Connection) -> None:
    """Its ports and virtual circuits go with it; asked again, it goes on."""
    if connection.status != "deleting":
        connection.status, connection.updated_at = "deleting", account.now()
        connection.due = account.clock.now().timestamp() + SECONDS
        _tell(account, connection, "deleting")


def settle(account: Account) -> None:
    """Approve dedicated interconnections whose time has come, and forget deleted ones."""
    table, now = account.table(Connection), account.clock.now().timestamp()
    for connection in table.where("status", "pending"):
        if connection.due <= now and not connection.is_shared:
            _activate(account, connection)
    for connection in table.where("status", "deleting"):
        if connection.due <= now:
            del table[connection.id]


def _tell(account: Account, connection: Connection, what: str) -> None:
    """Put something on its timeline; the names of such events are ours."""
    about = [f"connections/{connection.id}"]
    text = f"Interconnection {connection.name} is {what}"
    note(account, f"interconnection.{what}", text, project_id=connection.project_id, state=what, about=about)


def _activate(account: Account, connection: Connection) -> None:
    connection.status, connection.updated_at = "active", account.now()
    _tell(account, connection, "active")


def _speed(body: Body, kind: str, side: str | None) -> int:
    """In bits per second; one of those that there are."""
    value = body.document.get("speed")
    if value in (None, 0, ""):
        if side == "a_side":
            body.problems.append("Speed can't be blank for interconnections with a-side tokens")
        return speeds.DEFAULT
    speed, known = speeds.parse(value), speeds.DEDICATED + speeds.SHARED if kind == "dedicated" else speeds.SHARED
    if speed is None or speed not in known:
        body.problems.append(f"Speed must be one of {', '.join(map(str, known))} bps")
        return speeds.DEFAULT
    return speed
