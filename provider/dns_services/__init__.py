"""Where zones are kept: one interface to every DNS service.

rfc2136        servers that take signed updates: a batch is one message, atomic (RFC 2136)
route53        AWS: a batch is one change batch, atomic
lexicon        whatever dns-lexicon knows, Cloudflare among it: one record after the other
authorities    asks a zone's authoritative servers what they answer
opening        makes the keeper of a zone from settings

A service is told what to change in a safe order: markers of ownership first, then what is added, then what is removed,
then markers that are not needed any more. One that is killed in between leaves nothing that nobody claims.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from metal_ipi.provider.errors import RemoteError

Key = tuple[str, str]
"""Name and type: what identifies a set. Names are without trailing dot, in lower case."""
Found = Mapping[Key, Mapping[str, int]]
"""Sets that are there: each value, in its canonical spelling, with its TTL in seconds. Absent sets are left out."""


class Throttled(RemoteError):
    """The service wants to be left alone for a while: `retry_after` seconds, 0 when it did not say how long."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message, passing=True)
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True)
class RecordSet:
    """Values of one name and type, in their canonical spelling."""

    name: str
    type: str
    values: frozenset[str]

    @property
    def key(self) -> Key:
        """What identifies the set."""
        return (self.name, self.type)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value to be added (or given another TTL), or to be removed."""

    key: Key
    value: str
    remove: bool = False


class DnsService(Protocol):
    """The keeper of one zone."""

    @property
    def where(self) -> str:
        """The service, as messages name it."""
        ...

    async def read(self, keys: Iterable[Key]) -> Found:
        """What is there now: the sets asked for, and CNAMEs of the same names."""
        ...

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        """Makes the changes, in their order where it is not atomic. `now` is what was just read of these sets.

        Values that are there, or gone, already are fine. Raises RemoteError; the caller reads again and repeats.
        """
        ...

    async def prove_writable(self, name: str) -> None:
        """Raises RemoteError unless the zone can be changed; leaves nothing. `name`, of the zone, is nobody's."""
        ...

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        """What is seen of the sets, by each server that answers for the zone: its name, and what it holds."""
        ...


def canonical(type_: str, value: str) -> str:
    """One spelling per value, so that ours and the server's compare: `Host.` and `host` are the same name."""
    if type_ in ("PTR", "CNAME", "NS"):
        return value.rstrip(".").lower()
    if type_ == "AAAA":
        return str(ipaddress.ip_address(value))
    return value.strip('"') if type_ == "TXT" else value


def spelled(type_: str, value: str) -> str:
    """The value as zone files spell it."""
    if type_ in ("PTR", "CNAME", "NS"):
        return value + "."
    return f'"{value}"' if type_ == "TXT" else value
