"""Allocation: management addresses in /31 pairs, gateway even and machine odd; elastic ones in blocks."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator

from lab.machines.base import Address
from lab.metal_api.exceptions import Unprocessable
from lab.network import plan

PUBLIC_RANGES = ("198.51.100.0/24", "198.18.0.0/16")
"""Documentation and benchmarking ranges (RFC 5737, RFC 2544): the second is used when the first is full."""
PRIVATE_RANGES = ("203.0.113.0/24", "198.19.0.0/16")


def _pairs(ranges: tuple[str, ...]) -> Iterator[ipaddress.IPv4Network]:
    for text in ranges:
        yield from ipaddress.IPv4Network(text).subnets(new_prefix=31)


def allocate(taken: Collection[str], *, public: bool) -> Address:
    """The lowest free pair. `taken` are the machine addresses in use; raises Unprocessable when the ranges are full."""
    for pair in _pairs(PUBLIC_RANGES if public else PRIVATE_RANGES):
        gateway, machine = str(pair[0]), str(pair[1])
        if machine not in taken:
            return Address(address=machine, prefix=31, gateway=gateway, public=public)
    raise Unprocessable("There are no more addresses available in this facility")


def reserve(taken: Collection[ipaddress.IPv4Network], quantity: int) -> ipaddress.IPv4Network:
    """The lowest free block of elastic addresses; `quantity` is a power of 2. Unprocessable when there is none."""
    elastic = ipaddress.IPv4Network(plan.ELASTIC)
    prefix = 32 - (quantity.bit_length() - 1)
    if prefix >= elastic.prefixlen:
        for block in elastic.subnets(new_prefix=prefix):
            if not any(block.overlaps(other) for other in taken):
                return block
    raise Unprocessable(f"There are not {quantity} addresses in a row available in this facility")
