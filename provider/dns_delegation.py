"""Waits until a zone is delegated to our DNS server: NS records in its parent zone, which are set by hand.

It prints the missing records, then asks each of the parent's authoritative servers until all have them.
"""

from __future__ import annotations

import asyncio

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.dns_services.authorities import Server, ask, servers_of
from metal_ipi.provider.dns_services.rfc2136 import Rfc2136Service
from metal_ipi.provider.dns_settings import Delegation, DnsSettings, Rfc2136Settings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.resource import Context


async def await_delegation(context: Context, settings: DnsSettings, zone: str) -> None:
    """Wait for the delegation. Returns at once if none is configured. Raises RemoteError when the time is up."""
    if not isinstance(settings, Rfc2136Settings) or settings.delegation is None:
        return
    delegation = settings.delegation
    backoff, announced, seen = (
        Backoff(timeout=delegation.timeout, first=0.5, longest=15.0),
        False,
        "no server was asked yet",
    )
    parent = zone.partition(".")[2]
    while True:
        try:
            names, glue = await _wanted(settings, zone)
            missing = await _missing(delegation, zone, parent, names)
            if not missing:
                return
            seen = missing
            if not announced:
                announced = True
                await context.status.remark(_instructions(zone, parent, names, glue))
        except RemoteError as error:
            seen = str(error)
        too_long = RemoteError(
            f"zone {zone} is not delegated within {delegation.timeout:g} s: {seen}. Set its NS records in zone "
            f"{parent}, then run again"
        )
        await backoff.wait_for(f"NS records of {zone} that you have to set", context.status.live, too_long)


async def _wanted(settings: Rfc2136Settings, zone: str) -> tuple[list[str], dict[str, list[str]]]:
    """The names of the zone's servers, and the addresses (glue) of those within the zone itself."""
    primary = await Rfc2136Service(settings, zone).primary()
    names = sorted((await ask(primary, zone, "NS")).get((zone, "NS"), {}))
    if not names:
        raise RemoteError(f"{primary} serves zone {zone} without NS records: there is nothing to delegate to")
    glue: dict[str, list[str]] = {}
    for name in names:
        if name.endswith("." + zone):
            found = [await ask(primary, name, kind) for kind in ("A", "AAAA")]
            glue[name] = sorted(value for answer in found for values in answer.values() for value in values)
    return names, glue


async def _missing(delegation: Delegation, zone: str, parent: str, names: list[str]) -> str:
    """What is missing on the parent's servers; empty when all of them have all records."""
    servers = [_server(text) for text in delegation.parent_servers] or await servers_of(parent)
    answers = await asyncio.gather(*(ask(server, zone, "NS", referral=True) for server in servers))
    problems: list[str] = []
    for server, answer in zip(servers, answers, strict=True):
        lacking = sorted(set(names) - answer.get((zone, "NS"), {}).keys())
        if lacking:
            problems.append(f"{server} does not name {', '.join(lacking)}")
    return "; ".join(problems)


def _server(text: str) -> Server:
    address, _, port = text.partition("#")
    return Server(address, int(port or 53))


def _instructions(zone: str, parent: str, names: list[str], glue: dict[str, list[str]]) -> str:
    lines = [f"{zone}. NS {name}." for name in names]
    for name, addresses in glue.items():
        lines += [f"{name}. {'AAAA' if ':' in address else 'A'} {address}" for address in addresses]
    return f"set in zone {parent} to delegate {zone}:\n  " + "\n  ".join(lines)
