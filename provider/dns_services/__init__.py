"""DNS services: one interface for all services that keep zones.

rfc2136        servers with signed dynamic updates: a batch is one message, atomic (RFC 2136)
route53        AWS: a batch is one change batch, atomic
lexicon        all services of dns-lexicon, such as Cloudflare: one record after the other
authorities    asks a zone's authoritative servers
opening        makes the service of a zone from settings

Changes are given to a service in a safe order: markers of ownership first, then additions, then removals, then markers
that are no longer needed. So a killed run leaves no value without a marker.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from metal_ipi.provider.errors import RemoteError

Key = tuple[str, str]
"""(name, type) of a record set. Names are without a trailing dot, in lower case."""
Found = Mapping[Key, Mapping[str, int]]
"""Existing record sets: each value, in canonical form, with its TTL in seconds. Missing sets are left out."""


class Throttled(RemoteError):
    """The service throttles: it asks for `retry_after` seconds without requests, 0 if it does not say how long."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message, passing=True)
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True)
class RecordSet:
    """The values of one name and type, in canonical form."""

    name: str
    type: str
    values: frozenset[str]

    @property
    def key(self) -> Key:
        """Name and type of the set."""
        return (self.name, self.type)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value to add (or to give another TTL), or to remove."""

    key: Key
    value: str
    remove: bool = False


class DnsService(Protocol):
    """The service that keeps one zone."""

    @property
    def where(self) -> str:
        """The service's name in messages."""
        ...

    async def read(self, keys: Iterable[Key]) -> Found:
        """Read the existing sets, and CNAMEs of the same names."""
        ...

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        """Make the changes, one by one in this order if the service is not atomic. `now` is what was just read of these
        sets.

        Values that exist, or are gone, already are no error. Raises RemoteError; the caller reads again and repeats.
        """
        ...

    async def prove_writable(self, name: str) -> None:
        """Raise RemoteError if the zone cannot be changed. Changes nothing in the end. `name` is an unused name in the
        zone."""
        ...

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        """The sets as each server of the zone has them: (server's name, sets)."""
        ...


def canonical(type_: str, value: str) -> str:
    """The canonical form of a value, in which ours and the server's can be compared: `Host.` and `host` are the same
    name."""
    if type_ in ("PTR", "CNAME", "NS"):
        return value.rstrip(".").lower()
    if type_ == "AAAA":
        return str(ipaddress.ip_address(value))
    return value.strip('"') if type_ == "TXT" else value


def spelled(type_: str, value: str) -> str:
    """The value in the syntax of zone files."""
    if type_ in ("PTR", "CNAME", "NS"):
        return value + "."
    return f'"{value}"' if type_ == "TXT" else value
