"""What a stack orders from a machine platform, as plain data: one list for ordering, preflight and cost.

Programs create it from their settings (through `provider.types`, which exports these classes); the provider reads it
from a resource's inputs. It has no secrets; nothing is contacted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from metal_ipi.provider.forms import NOT_EMPTY, ShortName, Whole, between
from metal_ipi.provider.given import LEFT_OUT, ListOf, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.values import Unknown

NEXT_AVAILABLE = "next-available"
"""Metal's word for any free reserved server of the plan."""
ANY = "any"
"""A facility code that means: any facility with capacity."""
CUSTOM_IPXE = "custom_ipxe"
"""The operating system for which Metal boots an iPXE script."""
CONTROL_PLANE = "control-plane"
BOOTSTRAP = "bootstrap"
"""The role of the machine that exists only during an installation."""

_OWN_SUBNET = 31
"""The prefix length of every machine's public IPv4 subnet by default."""


class MachineOrder(Inputs):
    """Equal machines of one role."""

    role: str
    """`bootstrap`, `control-plane` or `worker`."""
    hostnames: Annotated[ListOf[ShortName], LEFT_OUT, NOT_EMPTY]
    """The host names, one for each machine."""
    plan: str
    operating_system: str
    reservations: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Ids of reserved servers in the order of `hostnames`, or only `next-available`. Empty: on demand."""
    spot_max_price: Annotated[float, between(0)] | None = None
    """The highest bid on the spot market, USD per hour. None: not from the spot market."""
    subnet_length: Whole | None = None
    """The prefix length of a machine's own public IPv4 subnet. None: the default."""

    @property
    def count(self) -> int:
        """The number of machines."""
        return len(self.hostnames)

    @property
    def further_addresses(self) -> int:
        """The number of public IPv4 addresses in each machine's subnet, if it is larger than the default; otherwise
        0."""
        length = _OWN_SUBNET if self.subnet_length is None else self.subnet_length
        return 2 ** (32 - length) if length < _OWN_SUBNET else 0

    def reservation(self, hostname: str) -> str | None:
        """The reservation for a machine; None if it has none."""
        if self.reservations == (NEXT_AVAILABLE,):
            return NEXT_AVAILABLE
        return self.reservations[self.hostnames.index(hostname)] if self.reservations else None


class AddressOrder(Inputs):
    """A block of public IPv4 addresses to reserve."""

    name: str
    quantity: Annotated[Whole, between(1)]
    """The number of addresses, a power of 2."""


class NetworkOrder(Inputs):
    """A VLAN to create."""

    name: str
    vlan: Whole | None = None
    """The VLAN id. None: the platform chooses."""
    subnet: str | None = None
    """The subnet of its machines' addresses, as a CIDR. None: not known in advance."""
    gateway_size: Whole | None = None
    """The number of addresses in its gateway's private subnet. None: it has no gateway."""


class Orders(Inputs):
    """All orders, in one location."""

    metro: str | None = None
    """The metro's code. None: `facilities` are given."""
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
        """The location for people: `da`, or `da11, da6`."""
        return self.metro or ", ".join(self.facilities)
