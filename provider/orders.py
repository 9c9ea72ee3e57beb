"""What a stack orders of a machine platform, as plain data: the one list for those who order, preflight and cost.

Programs make it of their settings (through `provider.types`, which hands these classes on); the provider reads them
back from a resource's inputs. Nothing here is secret, and nothing asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from metal_ipi.provider.forms import NOT_EMPTY, ShortName, Whole, between
from metal_ipi.provider.given import LEFT_OUT, ListOf, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.values import Unknown

NEXT_AVAILABLE = "next-available"
"""Any reserved server of the plan that is free, as Metal calls it."""
ANY = "any"
"""Among facilities: whatever has room."""
CUSTOM_IPXE = "custom_ipxe"
"""The operating system that Metal boots by an iPXE script."""
CONTROL_PLANE = "control-plane"
BOOTSTRAP = "bootstrap"
"""The role whose machine is there only while a cluster is installed."""

_OWN_SUBNET = 31
"""The length of the public IPv4 subnet that every machine has."""


class MachineOrder(Inputs):
    """Machines of one role, which are alike."""

    role: str
    """`bootstrap`, `control-plane` or `worker`."""
    hostnames: Annotated[ListOf[ShortName], LEFT_OUT, NOT_EMPTY]
    """One per machine."""
    plan: str
    operating_system: str
    reservations: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Ids of reserved servers in the order of `hostnames`, or `next-available` alone; empty: on demand."""
    spot_max_price: Annotated[float, between(0)] | None = None
    """The highest bid on the spot market, USD per hour; None: not from there."""
    subnet_length: Whole | None = None
    """Of a machine's own public IPv4 subnet; None: what every machine has."""

    @property
    def count(self) -> int:
        """How many machines."""
        return len(self.hostnames)

    @property
    def further_addresses(self) -> int:
        """How many public IPv4 addresses the subnet of each machine has, where it is not what every machine has."""
        length = _OWN_SUBNET if self.subnet_length is None else self.subnet_length
        return 2 ** (32 - length) if length < _OWN_SUBNET else 0

    def reservation(self, hostname: str) -> str | None:
        """What a machine is ordered with; None where nothing is reserved for it."""
        if self.reservations == (NEXT_AVAILABLE,):
            return NEXT_AVAILABLE
        return self.reservations[self.hostnames.index(hostname)] if self.reservations else None


class AddressOrder(Inputs):
    """A block of public IPv4 addresses."""

    name: str
    quantity: Annotated[Whole, between(1)]
    """A power of 2."""


class NetworkOrder(Inputs):
    """A VLAN."""

    name: str
    vlan: Whole | None = None
    """Its number; None: the platform chooses."""
    subnet: str | None = None
    """What its machines have addresses of, as a CIDR; None: not known beforehand."""
    gateway_size: Whole | None = None
    """How many addresses the private subnet of its gateway has; None: there is no gateway."""


class Orders(Inputs):
    """Everything that is ordered, all of it in one place."""

    metro: str | None = None
    """A metro's code; None: facilities are named."""
    facilities: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Facility codes in order of preference."""
    machines: Annotated[ListOf[MachineOrder], LEFT_OUT] = default(())
    addresses: Annotated[ListOf[AddressOrder], LEFT_OUT] = default(())
    networks: Annotated[ListOf[NetworkOrder], LEFT_OUT] = default(())

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        metro = given.get("metro")
        if not isinstance(metro, Unknown) and (metro is None) == (not given.get("facilities")):
            yield ("metro",), "or `facilities` must be given, and not both"

    @property
    def place(self) -> str:
        """Where, for people: `da`, or `da11, da6`."""
        return self.metro or ", ".join(self.facilities)
