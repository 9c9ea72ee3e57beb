"""Servers with RFC 2136 dynamic updates, through dnspython.

A batch of changes is one message, which the server applies as a whole or not at all (RFC 2136, section 3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from metal_ipi.provider.dns_services import Change, Found, Key, spelled
from metal_ipi.provider.dns_services.authorities import Server, address_of, ask_all, ask_each, servers_of
from metal_ipi.provider.dns_settings import Rfc2136Settings
from metal_ipi.provider.errors import RemoteError

if TYPE_CHECKING:  # the plugin starts without dnspython
    from dns.update import UpdateMessage

_CHANGES_PER_MESSAGE = 200
"""Keeps an update below 64 KiB, the limit of a DNS message over TCP."""
_ANSWER_TIMEOUT = 10.0
_PROBE_TTL = 60


class Rfc2136Service:
    """A zone's primary server."""

    def __init__(self, settings: Rfc2136Settings, zone: str) -> None:
        self._settings = settings
        self._zone = zone
        self._others: list[Server] | None = None

    @property
    def where(self) -> str:
        return f"DNS server {self._settings.server} port {self._settings.port}"

    async def primary(self) -> Server:
        """The server itself."""
        return Server(await asyncio.to_thread(address_of, self._settings.server), self._settings.port)

    async def read(self, keys: Iterable[Key]) -> Found:
        primary = await self.primary()
        found = await ask_all(primary, keys)
        wildcards = {key: _wildcards(key, self._zone) for key in found if not key[0].startswith("*")}
        synthesising = await ask_all(primary, {wildcard for several in wildcards.values() for wildcard in several})
        doubtful = [
            key
            for key, several in wildcards.items()
            if any(synthesising.get(one, {}).keys() == found[key].keys() for one in several)
        ]
        literal = await asyncio.gather(*(asyncio.to_thread(self._stands, key) for key in doubtful))
        unreal = {key for key, stands in zip(doubtful, literal, strict=True) if not stands}
        return {key: values for key, values in found.items() if key not in unreal}

    def _stands(self, key: Key) -> bool:
        """Whether a set is in the zone, or synthesised from a wildcard: an update with only a prerequisite (RFC 2136,
        2.4.1)."""
        question = self._message()
        question.present(key[0] + ".", key[1])
        code = self._send(question)
        if code in ("NXRRSET", "NXDOMAIN"):
            return False
        if code != "NOERROR":
            raise _refused(self.where, self._zone, code)
        return True

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        if changes:
            await asyncio.to_thread(self._change, changes, ttl, now)

    def _change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        added = {change.key: None for change in changes if not change.remove}
        steps = [
            partial(_renew, key=key, values=now[key], ttl=ttl)
            for key in added
            if any(held != ttl for held in now.get(key, {}).values())
        ]
        steps += [partial(_apply, change=change, ttl=ttl) for change in changes]
        for start in range(0, len(steps), _CHANGES_PER_MESSAGE):
            message = self._message()
            for step in steps[start : start + _CHANGES_PER_MESSAGE]:
                step(message)
            code = self._send(message)
            if code != "NOERROR":
                raise _refused(self.where, self._zone, code)

    def _message(self) -> UpdateMessage:
        """An empty update of the zone, signed with the settings' key."""
        import dns.tsigkeyring
        import dns.update

        key = self._settings
        keyring = dns.tsigkeyring.from_text({key.tsig.name: (key.tsig.algorithm, key.tsig.secret)})
        return dns.update.UpdateMessage(self._zone, keyring=keyring)

    def _send(self, message: UpdateMessage) -> str:
        """Send the message; returns the name of the response code. Raises RemoteError."""
        import dns.exception
        import dns.query
        import dns.rcode
        import dns.tsig

        try:
            server = address_of(self._settings.server)
            answer = dns.query.tcp(message, server, timeout=_ANSWER_TIMEOUT, port=self._settings.port)
            return dns.rcode.to_text(answer.rcode())
        except dns.tsig.PeerError as error:
            raise _refused(self.where, self._zone, _TSIG_CODES.get(type(error).__name__, _reason(error))) from None
        except (dns.exception.Timeout, EOFError, OSError) as error:
            raise RemoteError(f"{self.where} does not answer: {_reason(error)}", passing=True) from None
        except dns.exception.DNSException as error:
            raise _refused(self.where, self._zone, _reason(error)) from None

    async def prove_writable(self, name: str) -> None:
        """One message that adds a value and removes it again: the zone and its serial stay the same."""
        nothing = Change(key=(name, "TXT"), value="metal-ipi")
        await self.change([nothing, replace(nothing, remove=True)], _PROBE_TTL, {})

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        primary = await self.primary()
        if self._others is None:
            everybody = await servers_of(self._zone, primary) if self._settings.propagation.everywhere else []
            self._others = [server for server in everybody if server.address != primary.address]
        return await ask_each([primary, *self._others], keys)


def _wildcards(key: Key, zone: str) -> list[Key]:
    """The wildcards that may answer for a name."""
    labels = key[0].removesuffix(zone).split(".")[:-1] if key[0] != zone else []
    above = [".".join([*labels[start:], zone]) for start in range(1, len(labels) + 1)]
    return [(f"*.{name}", key[1]) for name in above]


_TSIG_CODES = {"PeerBadKey": "BADKEY", "PeerBadSignature": "BADSIG", "PeerBadTime": "BADTIME"}
_REMEDIES = {
    "REFUSED": "the key may not update this zone: check the server's ACL",
    "NOTAUTH": "the server does not know the TSIG key or is not the zone's primary",
    "NOTZONE": "a record is outside the zone",
    "BADKEY": "the server does not know the TSIG key's name: correct dns.tsig.name",
    "BADSIG": "the server has another TSIG secret: correct dns.tsig.secret",
    "NXRRSET": "somebody else changed the same records meanwhile",
    "BADTIME": "the clocks of this machine and of the server differ: set the one that is wrong",
}


def _apply(message: UpdateMessage, change: Change, ttl: int) -> None:
    """Add one change to a message."""
    name, kind = change.key
    content = spelled(kind, change.value)
    if change.remove:
        message.delete(name + ".", kind, content)
    else:
        message.add(name + ".", ttl, kind, content)


def _renew(message: UpdateMessage, key: Key, values: Iterable[str], ttl: int) -> None:
    """Give a set another TTL, which all its values share: Knot keeps the old TTL as long as one value stays.

    All values are deleted and added again in one message, on the condition that they are still those that were read.
    """
    name, kind = key[0] + ".", key[1]
    data = [spelled(kind, value) for value in sorted(values)]
    message.present(name, kind, *data)
    message.delete(name, kind)
    message.add(name, ttl, kind, *data)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _refused(where: str, zone: str, reason: str) -> RemoteError:
    remedy = _REMEDIES.get(reason)
    message = f"{where} did not accept the update of zone {zone}: {reason}{': ' + remedy if remedy else ''}"
    return RemoteError(message, passing=reason in ("SERVFAIL", "NXRRSET"))
