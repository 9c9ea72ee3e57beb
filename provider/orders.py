"""What a stack orders of a machine platform, as plain data: the one list for those who order, preflight and cost.

Programs make it of their settings (through `provider.types`, which hands these classes on); the provider reads it back
from a resource's inputs. Nothing here is secret, and nothing asks anybody.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

NEXT_AVAILABLE = "next-available"
"""Any reserved server of the plan that is free, as Metal calls it."""
ANY = "any"
"""Among facilities: whatever has room."""
CONTROL_PLANE = "control-plane"
BOOTSTRAP = "bootstrap"
"""The role whose machine is there only while a cluster is installed."""

_OWN_SUBNET = 31
"""The length of the public IPv4 subnet that every machine has."""


def public_addresses(length: int) -> int:
    """How many addresses a machine's subnet has; none where it is no larger than what every machine has."""
    return 2 ** (32 - length) if length < _OWN_SUBNET else 0


@dataclass(frozen=True, kw_only=True)
class MachineOrder:
    """Machines of one role, which are alike."""

    role: str
    """`bootstrap`, `control-plane` or `worker`."""
    hostnames: tuple[str, ...]
    """One per machine."""
    plan: str
    operating_system: str
    reservations: tuple[str, ...] = ()
    """Ids of reserved servers by the machines' numbers, or `next-available` alone; empty: on demand."""
    spot_max_price: float | None = None
    """The highest bid on the spot market, USD per hour; None: not from there."""
    subnet_length: int | None = None
    """Of a machine's own public IPv4 subnet; None: what every machine has."""

    @property
    def count(self) -> int:
        """How many machines."""
        return len(self.hostnames)

    @property
    def further_addresses(self) -> int:
        """How many public IPv4 addresses the subnet of each machine has, where it is not what every machine has."""
        return 0 if self.subnet_length is None else public_addresses(self.subnet_length)

    def reservation(self, number: int) -> str | None:
        """What the `number`-th machine is ordered with; None where nothing is reserved for it."""
        if self.reservations == (NEXT_AVAILABLE,):
            return NEXT_AVAILABLE
        return self.reservations[number] if self.reservations else None


@dataclass(frozen=True, kw_only=True)
class AddressOrder:
    """A block of public IPv4 addresses."""

    name: str
    quantity: int
    """A power of 2."""


@dataclass(frozen=True, kw_only=True)
class NetworkOrder:
    """A VLAN."""

    name: str
    vlan: int | None = None
    """Its number; None: the platform chooses."""
    subnet: str | None = None
    """What its machines have addresses of, as a CIDR; None: not known beforehand."""
    gateway_size: int | None = None
    """How many addresses the private subnet of its gateway has; None: there is no gateway."""


@dataclass(frozen=True, kw_only=True)
class Orders:
    """Everything that is ordered, all of it in one place."""

    metro: str | None = None
    """A metro's code; None: facilities are named."""
    facilities: tuple[str, ...] = ()
    """Facility codes in order of preference."""
    machines: tuple[MachineOrder, ...] = ()
    addresses: tuple[AddressOrder, ...] = ()
    networks: tuple[NetworkOrder, ...] = ()

    @property
    def place(self) -> str:
        """Where, for people: `da`, or `da11, da6`."""
        return self.metro or ", ".join(self.facilities)

    def to_wire(self) -> dict[str, Any]:
        """As a property of a resource: camelCase, without what is not given."""
        return wire(dataclasses.asdict(self))


def wire(value: Any) -> Any:
    """Plain data as the wire has it: keys in camelCase, and without what is None or empty."""
    if isinstance(value, dict):
        items = {str(key): item for key, item in value.items()}
        return {_camel(key): wire(item) for key, item in items.items() if item is not None and item not in ((), {})}
    return [wire(item) for item in value] if isinstance(value, (list, tuple)) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
