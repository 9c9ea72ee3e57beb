"""Addresses: which are free, and the blocks that projects have.

A device's own networks come with it, the gateway's address being the first of each. Blocks of elastic addresses are
reserved by projects, and announced by their devices with BGP.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lab.machines.base import Address
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account
from lab.network import plan

PUBLIC_RANGES = ("198.51.100.0/24", "198.18.0.0/16")
"""Documentation and benchmarking ranges (RFC 5737, RFC 2544): the second is used when the first is full."""
PRIVATE_RANGES = ("203.0.113.0/24", "198.19.0.0/16")
PREFIX = 31
"""The prefix length of a device's networks, unless it is ordered with larger ones."""


@saved("reservations", indexed=("project_id",))
@dataclass(kw_only=True)
class Reservation(Record):
    """A block of addresses that belongs to a project until it is released."""

    project_id: str
    network: str
    """The network in CIDR notation."""
    metro: str
    facility: str | None
    """Only of a block that was asked for in a facility."""
    type: str = "public_ipv4"
    """Or private_ipv4, of a block that was made for a metal gateway and goes with it."""
    details: str | None = None
    tags: list[str] = field(default_factory=list[str])
    customdata: Json = field(default_factory=dict[str, Any])


def blocks_of(account: Account, project_id: str) -> list[Reservation]:
    """A project's blocks, in the order in which they were reserved."""
    return account.table(Reservation).where("project_id", project_id)


def public_networks(account: Account, project_id: str) -> tuple[str, ...]:
    """What a project's devices may announce, in CIDR notation."""
    return tuple(block.network for block in blocks_of(account, project_id) if block.type == "public_ipv4")


def allocate(taken: Callable[[str], bool], *, public: bool, prefix: int = PREFIX) -> Address:
    """The lowest free network. `taken` knows the `pairs` in use; Unprocessable when the ranges are full."""
    needed = 1 << (PREFIX - prefix)
    for text in PUBLIC_RANGES if public else PRIVATE_RANGES:
        every = _pairs(ipaddress.IPv4Network(text))
        for first in range(0, len(every), needed):
            if not any(map(taken, every[first : first + needed])):
                network = ipaddress.IPv4Network(f"{every[first]}/{prefix}")
                gateway = network[0] if prefix == PREFIX else network[1]
                return Address(address=str(gateway + 1), prefix=prefix, gateway=str(gateway), public=public)
    raise Unprocessable("There are no more addresses available in this facility")


def network_of(address: Address) -> ipaddress.IPv4Network:
    """The network that a device's address is in."""
    return ipaddress.IPv4Network(f"{address.address}/{address.prefix}", strict=False)


@lru_cache(maxsize=4096)
def pairs(address: Address) -> tuple[str, ...]:
    """The even addresses of the network that an address is in."""
    return _pairs(network_of(address))


@lru_cache(maxsize=4096)
def _pairs(network: ipaddress.IPv4Network) -> tuple[str, ...]:
    first = int(network.network_address)
    return tuple(
        socket.inet_ntoa(number.to_bytes(4, "big")) for number in range(first, first + network.num_addresses, 2)
    )


def elastic(account: Account, quantity: int) -> ipaddress.IPv4Network:
    """The lowest free block of elastic addresses; `quantity` is a power of 2. Unprocessable when there is none."""
    block = lowest(plan.ELASTIC, quantity, (block.network for block in account.table(Reservation).values()))
    if block is None:
        raise Unprocessable(f"There are not {quantity} addresses in a row available in this facility")
    return block


def lowest(within: str, size: int, taken: Iterable[str]) -> ipaddress.IPv4Network | None:
    """The lowest free network of `size` addresses, a power of 2, in the network `within`; None when there is none."""
    first, beyond = _bounds(within)
    for start, end in sorted(map(_bounds, taken)):
        if start >= first + size:
            break
        first = max(first, -(-end // size) * size)
    return ipaddress.IPv4Network((first, 33 - size.bit_length())) if first + size <= beyond else None


@lru_cache(maxsize=4096)
def _bounds(text: str) -> tuple[int, int]:
    """The first address of a network, and the one behind its last."""
    network = ipaddress.IPv4Network(text)
    return int(network.network_address), int(network.broadcast_address) + 1
