"""Asks authoritative servers one by one, because each of them may answer resolvers, the slowest included."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metal_ipi.provider.dns_services import Found, Key, canonical
from metal_ipi.provider.errors import RemoteError

_QUESTIONS_AT_ONCE = 20
_TIMEOUT = 3.0


@dataclass(frozen=True)
class Server:
    """One DNS server."""

    address: str
    port: int = 53
    name: str = ""

    def __str__(self) -> str:
        shown = f"{self.name} ({self.address})" if self.name else self.address
        return f"DNS server {shown} port {self.port}"


async def ask(server: Server, name: str, type_: str, *, referral: bool = False) -> dict[Key, dict[str, int]]:
    """The server's authoritative answer, with CNAMEs; with `referral`, also NS records of a referral.

    Raises RemoteError if it does not answer (transient), or is not an authority for the name.
    """
    import dns.asyncquery
    import dns.exception
    import dns.flags
    import dns.message
    import dns.rcode
    import dns.rdatatype

    query = dns.message.make_query(name + ".", type_)
    query.flags &= ~dns.flags.RD
    try:
        answer, _ = await dns.asyncquery.udp_with_fallback(query, server.address, timeout=_TIMEOUT, port=server.port)
    except (dns.exception.DNSException, OSError) as error:
        raise RemoteError(f"{server} does not answer: {str(error) or type(error).__name__}", passing=True) from None
    if answer.rcode() == dns.rcode.NXDOMAIN:
        return {}
    authority = bool(answer.flags & dns.flags.AA)
    if answer.rcode() != dns.rcode.NOERROR or not (authority or referral):
        code = dns.rcode.to_text(answer.rcode())
        raise RemoteError(f"{server} answers {code} for {name} without authority: is it the zone's server?")
    found: dict[Key, dict[str, int]] = {}
    for rrset in [*answer.answer, *(answer.authority if referral else ())]:
        kind = dns.rdatatype.to_text(rrset.rdtype)
        if rrset.name.to_text(omit_final_dot=True).lower() == name and kind in (type_, "CNAME"):
            found[(name, kind)] = {canonical(kind, rdata.to_text()): int(rrset.ttl) for rdata in rrset}
    return found


async def ask_all(server: Server, keys: Iterable[Key]) -> dict[Key, dict[str, int]]:
    """The server's answers for several sets."""
    limit = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def one(key: Key) -> dict[Key, dict[str, int]]:
        async with limit:
            return await ask(server, *key)

    found: dict[Key, dict[str, int]] = {}
    for part in await asyncio.gather(*(one(key) for key in set(keys))):
        found.update(part)
    return found


async def ask_each(servers: Sequence[Server], keys: Sequence[Key]) -> list[tuple[str, Found]]:
    """The answers of several servers: (server's name, sets)."""
    answers = await asyncio.gather(*(ask_all(server, keys) for server in servers))
    return [(str(server), found) for server, found in zip(servers, answers, strict=True)]


async def servers_of(zone: str, primary: Server | None = None) -> list[Server]:
    """The servers in the zone's NS records, as its primary server or this machine's resolver has them."""
    if primary is None:
        names = await asyncio.to_thread(_resolved_names, zone)
    else:
        names = sorted((await ask(primary, zone, "NS")).get((zone, "NS"), {}))
    if not names:
        raise RemoteError(
            f"zone {zone} has no NS records that can be found, so there is no server to ask", passing=True
        )
    return [Server(await _address(name, zone, primary), name=name) for name in names]


async def _address(name: str, zone: str, primary: Server | None) -> str:
    if primary is not None and name.endswith("." + zone):
        for kind in ("A", "AAAA"):
            addresses = (await ask(primary, name, kind)).get((name, kind))
            if addresses:
                return min(addresses)
    return await asyncio.to_thread(address_of, name)


def _resolved_names(zone: str) -> list[str]:
    import dns.exception
    import dns.resolver

    try:
        answer = dns.resolver.resolve(zone + ".", "NS", lifetime=10)
    except dns.exception.DNSException as error:
        raise RemoteError(f"the name servers of {zone} cannot be found: {error}", passing=True) from None
    return sorted(canonical("NS", rdata.to_text()) for rdata in answer)


def address_of(host: str) -> str:
    """An address of a host; IPv4 if it has one."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, 53, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RemoteError(f"the DNS server's name {host} does not resolve: {error.strerror}", passing=True) from None
    return str(min(found, key=lambda item: item[0] != socket.AF_INET)[4][0])
