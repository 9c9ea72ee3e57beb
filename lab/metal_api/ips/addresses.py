"""Allocation: devices' own addresses, the gateway's the first of their network; elastic ones in blocks."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache

from lab.machines.base import Address
from lab.metal_api.exceptions import Unprocessable
from lab.network import plan

PUBLIC_RANGES = ("198.51.100.0/24", "198.18.0.0/16")
"""Documentation and benchmarking ranges (RFC 5737, RFC 2544): the second is used when the first is full."""
PRIVATE_RANGES = ("203.0.113.0/24", "198.19.0.0/16")


PREFIX = 31
"""Of a device's networks, unless it is ordered with larger ones."""


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


@lru_cache(maxsize=4096)
def pairs(address: Address) -> tuple[str, ...]:
    """The even addresses of the network that an address is in."""
    return _pairs(ipaddress.IPv4Network(f"{address.address}/{address.prefix}", strict=False))


@lru_cache(maxsize=4096)
def _pairs(network: ipaddress.IPv4Network) -> tuple[str, ...]:
    first = int(network.network_address)
    return tuple(_text(number) for number in range(first, first + network.num_addresses, 2))


def _text(number: int) -> str:
    return socket.inet_ntoa(number.to_bytes(4, "big"))


def lowest(within: str, size: int, taken: Iterable[str]) -> ipaddress.IPv4Network | None:
    """The lowest free network of `size` addresses, a power of 2, in the network `within`; None when there is none.

    One look at each of those that are `taken`, in the order of their addresses, however many there are.
    """
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


def reserve(taken: Iterable[str], quantity: int) -> ipaddress.IPv4Network:
    """The lowest free block of elastic addresses; `quantity` is a power of 2. Unprocessable when there is none."""
    block = lowest(plan.ELASTIC, quantity, taken)
    if block is not None:
        return block
    raise Unprocessable(f"There are not {quantity} addresses in a row available in this facility")
