"""Talks to an authoritative DNS server: updates through dns-lexicon's `ddns` provider, questions through dnspython.

What lexicon 3.25.2 leaves out is added around its one point of I/O, `_run_query`: it ignores the answer's code (a
refused update looks like a success), knows no port and no host name, and sends one message per record (here a batch
travels as one message, which the server applies wholly or not at all, RFC 2136 section 3). Its list_records cannot be
used (it fails on the first record found), and its Client guesses zones from a list it fetches from the internet.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from provider.configuration import DnsSettings
from provider.errors import RemoteError

_CHANGES_PER_MESSAGE = 200
"""Keeps an update below the 64 KiB a DNS message over TCP may have."""
_QUESTIONS_AT_ONCE = 20


@dataclass(frozen=True, kw_only=True)
class RecordSet:
    """Values of one name and type. Names are without trailing dot, in lower case; values as DNS prints them."""

    name: str
    type: str
    values: frozenset[str]

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the set."""
        return (self.name, self.type)


class DnsService(Protocol):
    """An authoritative server for one zone."""

    async def values(self, name: str, type_: str) -> frozenset[str]:
        """What the server answers now."""
        ...

    async def change(self, add: Sequence[RecordSet], remove: Sequence[RecordSet], ttl: int) -> None:
        """Adds and removes single values. Values that are there, or gone, already are fine."""
        ...


def canonical(type_: str, value: str) -> str:
    """One spelling per value, so that ours and the server's compare: `Host.` and `host` are the same name."""
    if type_ in ("PTR", "CNAME"):
        return value.rstrip(".").lower()
    if type_ == "AAAA":
        import ipaddress

        return str(ipaddress.ip_address(value))
    return value.strip('"') if type_ == "TXT" else value


class Rfc2136Service:
    """A server that takes RFC 2136 updates."""

    def __init__(self, settings: DnsSettings, zone: str) -> None:
        self._settings = settings
        self._zone = zone

    async def values(self, name: str, type_: str) -> frozenset[str]:
        import dns.asyncquery
        import dns.exception
        import dns.flags
        import dns.message
        import dns.rcode
        import dns.rdatatype

        address = await asyncio.to_thread(_address_of, self._settings)
        query = dns.message.make_query(name + ".", type_)
        query.flags &= ~dns.flags.RD
        try:
            answer, _ = await dns.asyncquery.udp_with_fallback(query, address, timeout=3, port=self._settings.port)
        except (dns.exception.DNSException, OSError) as error:
            raise RemoteError(f"{self._where()} does not answer: {_reason(error)}", passing=True) from None
        if answer.rcode() == dns.rcode.NXDOMAIN:
            return frozenset()
        if answer.rcode() != dns.rcode.NOERROR or not answer.flags & dns.flags.AA:
            code = dns.rcode.to_text(answer.rcode())
            raise RemoteError(
                f"{self._where()} answers {code} for {name}, zone {self._zone}: is it the zone's primary?"
            )
        wanted = dns.rdatatype.from_text(type_)
        sets = [item for item in answer.answer if item.rdtype == wanted]
        return frozenset(canonical(type_, rdata.to_text()) for item in sets for rdata in item)

    async def change(self, add: Sequence[RecordSet], remove: Sequence[RecordSet], ttl: int) -> None:
        if add or remove:
            await asyncio.to_thread(self._change, add, remove, ttl)

    def _change(self, add: Sequence[RecordSet], remove: Sequence[RecordSet], ttl: int) -> None:
        provider = _lexicon_provider(self._settings, self._zone, ttl)
        for record in remove:
            for value in sorted(record.values):
                provider.delete_record(rtype=record.type, name=record.name + ".", content=_spelled(record.type, value))
        for record in add:
            for value in sorted(record.values):
                provider.create_record(record.type, record.name + ".", _spelled(record.type, value))
        provider.flush(self._where())

    def _where(self) -> str:
        return f"DNS server {self._settings.server} port {self._settings.port}"


async def values_of(service: DnsService, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
    """What the server answers for many sets."""
    limit = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def ask(key: tuple[str, str]) -> tuple[tuple[str, str], frozenset[str]]:
        async with limit:
            return key, await service.values(*key)

    return dict(await asyncio.gather(*(ask(key) for key in keys)))


def _spelled(type_: str, value: str) -> str:
    """The value as zone files spell it."""
    if type_ in ("PTR", "CNAME"):
        return value + "."
    return f'"{value}"' if type_ == "TXT" else value


def _address_of(settings: DnsSettings) -> str:
    try:
        found = socket.getaddrinfo(settings.server, settings.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RemoteError(f"the DNS server's name {settings.server} does not resolve: {error.strerror}") from None
    return str(found[0][4][0])


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


_TSIG_CODES = {"PeerBadKey": "BADKEY", "PeerBadSignature": "BADSIG", "PeerBadTime": "BADTIME"}
_REMEDIES = {
    "REFUSED": "the key may not update this zone, see the server's ACL",
    "NOTAUTH": "the server does not know the TSIG key or is not the zone's primary",
    "NOTZONE": "a record is outside the zone",
    "BADKEY": "the server does not know the TSIG key's name",
    "BADSIG": "the TSIG secret is not the server's",
    "BADTIME": "the clocks of this machine and the server differ",
}


def _lexicon_provider(settings: DnsSettings, zone: str, ttl: int) -> Any:
    import dns.exception
    import dns.query
    import dns.rcode
    import dns.tsig
    import dns.update
    from lexicon._private.providers import ddns
    from lexicon.config import ConfigResolver

    class Batch(ddns.Provider):
        """Collects updates and sends them together."""

        def __init__(self, config: ConfigResolver) -> None:
            super().__init__(config)
            self._waiting: list[dns.update.UpdateMessage] = []

        def _run_query(self, message: Any) -> Any:
            self._waiting.append(message)

        def flush(self, where: str) -> None:
            waiting, self._waiting = self._waiting, []
            for start in range(0, len(waiting), _CHANGES_PER_MESSAGE):
                together, *others = waiting[start : start + _CHANGES_PER_MESSAGE]
                for other in others:
                    together.update.extend(other.update)
                self._send(together, where)

        def _send(self, message: dns.update.UpdateMessage, where: str) -> None:
            try:
                answer = dns.query.tcp(message, _address_of(settings), timeout=10, port=settings.port)
            except dns.tsig.PeerError as error:
                raise _refused(where, zone, _TSIG_CODES.get(type(error).__name__, _reason(error))) from None
            except (dns.exception.Timeout, EOFError, OSError) as error:
                raise RemoteError(f"{where} does not answer: {_reason(error)}", passing=True) from None
            except dns.exception.DNSException as error:
                raise _refused(where, zone, _reason(error)) from None
            if answer.rcode() != dns.rcode.NOERROR:
                raise _refused(where, zone, dns.rcode.to_text(answer.rcode()))

    token = f"{settings.tsig_algorithm}:{settings.tsig_name}:{settings.tsig_secret}"
    config = ConfigResolver().with_dict(
        {
            "provider_name": "ddns",
            "domain": zone,
            "ttl": ttl,
            # The provider reads its zone from its own section.
            "ddns": {"auth_token": token, "ddns_server": settings.server, "domain": zone},
        }
    )
    return Batch(config)


def _refused(where: str, zone: str, reason: str) -> RemoteError:
    remedy = _REMEDIES.get(reason)
    message = f"{where} did not take the update of zone {zone}: {reason}{': ' + remedy if remedy else ''}"
    return RemoteError(message, passing=reason == "SERVFAIL")
