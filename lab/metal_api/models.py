"""The records the emulated account is made of: plain, mutable where the API can change them, JSON-serialisable."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from lab.machines.base import Address

Json = dict[str, Any]

PROVISIONABLE = "custom_ipxe"
"""The one operating system the lab can boot."""


@dataclass(kw_only=True)
class Project:
    """A project of the one organization."""

    id: str
    name: str
    created_at: str
    updated_at: str
    backend_transfer_enabled: bool = False
    customdata: Json = field(default_factory=dict[str, Any])
    tags: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class SshKey:
    """A public key, of a project or (`project_id` None) of the user."""

    id: str
    label: str
    key: str
    fingerprint: str
    created_at: str
    updated_at: str
    project_id: str | None
    tags: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class Event:
    """Something that happened to a device or a project."""

    id: str
    type: str
    body: str
    state: str
    created_at: str


@dataclass(kw_only=True)
class Device:
    """A server on order or in use. Bodies of requests end here; what it looks like is `responses`' business."""

    id: str
    project_id: str
    hostname: str
    plan: str
    facility: str
    operating_system: str
    state: str
    created_at: str
    updated_at: str
    mac: str
    root_password: str
    addresses: list[Address]
    address_ids: list[str]
    ssh_key_ids: list[str]
    powered: bool = False
    """Whether the back end was asked to run it: what is switched on again after a restart of this process."""
    description: str | None = None
    billing_cycle: str = "hourly"
    tags: list[str] = field(default_factory=list[str])
    userdata: str = ""
    customdata: Json = field(default_factory=dict[str, Any])
    ipxe_script_url: str | None = None
    always_pxe: bool = False
    locked: bool = False
    network_frozen: bool = False
    extra_keys: list[str] = field(default_factory=list[str])
    """Public keys given in the request itself (`ssh_keys`)."""
    blanking: list[str] = field(default_factory=list[str])
    """Serial numbers of the disks that the reinstallation under way still has to wipe."""
    events: list[Event] = field(default_factory=list[Event])

    @property
    def public_ipv4(self) -> str:
        """The address it is known by."""
        return next(entry.address for entry in self.addresses if entry.public)

    @property
    def private_ipv4(self) -> str:
        """The address that its BGP comes from."""
        return next(entry.address for entry in self.addresses if not entry.public)


@dataclass(kw_only=True)
class Reservation:
    """A block of elastic addresses that belongs to a project until it is released."""

    id: str
    project_id: str
    network: str
    """In CIDR notation."""
    metro: str
    facility: str | None
    """Only of a block that was asked for in a facility."""
    created_at: str
    details: str | None = None
    tags: list[str] = field(default_factory=list[str])
    customdata: Json = field(default_factory=dict[str, Any])


@dataclass(kw_only=True)
class Assignment:
    """A part of a reservation that is routed to one device."""

    id: str
    reservation_id: str
    device_id: str
    network: str
    """In CIDR notation."""
    created_at: str
    details: str | None = None
    tags: list[str] = field(default_factory=list[str])
    customdata: Json = field(default_factory=dict[str, Any])


@dataclass(kw_only=True)
class BgpConfig:
    """What lets a project's devices speak BGP. There is at most one per project, and the API cannot take it away."""

    id: str
    project_id: str
    deployment_type: str
    asn: int
    md5: str | None
    created_at: str


@dataclass(kw_only=True)
class BgpSession:
    """Metal's routers' side of BGP with one device, in one address family."""

    id: str
    device_id: str
    address_family: str
    default_route: bool
    created_at: str
    updated_at: str


@dataclass(kw_only=True)
class Fault:
    """A misbehaviour somebody switched on. What the kinds mean is told in `faults`."""

    id: str
    kind: str
    match: dict[str, str]
    count: int | None = 1
    """How often it still strikes; None for ever."""
    when: str = "before"
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    seconds: float = 1.0
    hits: int = 0


Record = TypeVar("Record", Project, SshKey, Device, Reservation, Assignment, BgpConfig, BgpSession, Fault)


def to_json(record: Record) -> Json:
    """A record as JSON."""
    return asdict(record)


def from_json(kind: type[Record], document: Json) -> Record:
    """A record from the JSON `to_json` made; keys it does not know are an error, not ignored."""
    values = dict(document)
    if kind is Device:
        values["addresses"] = [Address(**entry) for entry in values["addresses"]]
        values["events"] = [Event(**entry) for entry in values["events"]]
    unknown = values.keys() - {entry.name for entry in fields(kind)}
    if unknown:
        raise ValueError(f"{kind.__name__}: unknown keys in the saved state: {', '.join(sorted(unknown))}")
    return kind(**values)
