"""Devices and what happened to them: records, and how they change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from lab.machines.base import Address
from lab.metal_api.addresses import pairs
from lab.metal_api.catalog import FACILITIES, PLANS, Plan, stable_id
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

GONE = "deprovisioning"
PROVISIONABLE = "custom_ipxe"
"""The one operating system the lab can boot."""
BOND = "bond0"
INTERFACES = ("eth0", "eth1")
"""The members of the bond."""
PORTS = (BOND, *INTERFACES)


@saved(
    "devices",
    indexed=(
        "project_id", "own_addresses", "own_pairs", "address_ids", "block_ids", "stock", "hardware_reservation_id",
        "spot_request_id", "limited",
    ),
)  # fmt: skip
@dataclass(kw_only=True)
class Device(Record):
    """A server on order or in use."""

    project_id: str
    hostname: str
    plan: str
    facility: str
    operating_system: str
    state: str
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
    hardware_reservation_id: str | None = None
    """The reserved hardware that it is on."""
    spot_price_max: float | None = None
    """Only of a device of the spot market."""
    spot_request_id: str | None = None
    """The spot market request that made it, which may be gone."""
    termination_time: str | None = None
    """When it is released by itself."""
    blanking: list[str] = field(default_factory=list[str])
    """Serial numbers of the disks that the reinstallation under way still has to wipe."""

    @property
    def own_addresses(self) -> list[str]:
        """The addresses by which the metadata service recognizes it."""
        return [entry.address for entry in self.addresses]

    @property
    def own_pairs(self) -> list[str]:
        """Networks that no other network may overlap."""
        return [pair for entry in self.addresses for pair in pairs(entry)]

    @property
    def limited(self) -> str | None:
        """The index of the devices that end by themselves."""
        return "limited" if self.termination_time else None

    @property
    def block_ids(self) -> list[str]:
        """The ids of the blocks behind its own addresses."""
        return [stable_id("block", f"{entry.gateway}/{entry.prefix}") for entry in self.addresses]

    @property
    def stock(self) -> str | None:
        """The stock that it reduces: see `capacity`. Reserved hardware does not count."""
        return None if self.hardware_reservation_id else f"{self.facility}/{self.plan}"

    @property
    def metro(self) -> str:
        """The metro of its facility."""
        return FACILITIES[self.facility].metro

    @property
    def hardware(self) -> Plan:
        """The plan's hardware."""
        return PLANS[self.plan]

    @property
    def public_ipv4(self) -> str:
        """The address it is known by."""
        return next(entry.address for entry in self.addresses if entry.public)

    @property
    def private_ipv4(self) -> str:
        """The address that its BGP comes from."""
        return next(entry.address for entry in self.addresses if not entry.public)

    @property
    def macs(self) -> dict[str, str]:
        """Its interfaces and their MACs."""
        return dict(zip(INTERFACES, (self.mac, "52:54:01" + self.mac[8:]), strict=True))

    @property
    def iqn(self) -> str:
        """The iSCSI name Metal gives every device."""
        return f"iqn.{self.created_at[:7]}.net.packet:device.{self.id[:8]}"


@saved("events", indexed=("device_id", "project_id"))
@dataclass(kw_only=True)
class Event(Record):
    """Something that happened to a device. It outlives the device, in its project."""

    type: str
    body: str
    state: str
    project_id: str
    device_id: str


def devices_of(account: Account, project_id: str) -> list[Device]:
    """Devices of one project, newest first as the API lists them."""
    return account.table(Device).where("project_id", project_id)[::-1]


def device_at(account: Account, address: str) -> Device | None:
    """The device that has this address, public or private."""
    return next(iter(account.table(Device).where("own_addresses", address)), None)


def set_state(account: Account, device: Device, state: str, *, powered: bool | None = None) -> None:
    """Move a device on in its life."""
    device.state = state
    if powered is not None:
        device.powered = powered
    device.updated_at = account.now()


def add_event(account: Account, device: Device, kind: str, body: str, state: str | None = None) -> None:
    """Put something on the device's timeline."""
    account.make(
        Event,
        type=kind,
        body=body,
        state=state or device.state,
        project_id=device.project_id,
        device_id=device.id,
    )


def events_of(account: Account, device: Device) -> list[Event]:
    """A device's events, oldest first."""
    return account.table(Event).where("device_id", device.id)


def port_id(device_id: str, name: str) -> str:
    """The id of a device's port: the device's own, but for its last bits."""
    return str(uuid.UUID(int=uuid.UUID(device_id).int ^ (PORTS.index(name) + 1)))
