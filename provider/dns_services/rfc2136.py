"""Servers that take RFC 2136 updates: through dns-lexicon's `ddns` provider; questions through dnspython.

What lexicon 3.25.2 leaves out is added around its one point of I/O, `_run_query`: it ignores the answer's code (a
refused update looks like a success), knows no port and no host name, and sends one message per record (here a batch
travels as one message, which the server applies wholly or not at all, RFC 2136 section 3). Its list_records cannot be
used (it fails on the first record found), and its Client guesses zones from a list it fetches from the internet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from provider.dns_services import Change, Found, Key, spelled
from provider.dns_services.authorities import Server, address_of, ask_all, servers_of
from provider.dns_settings import Rfc2136Settings
from provider.errors import RemoteError

_CHANGES_PER_MESSAGE = 200
"""Keeps an update below the 64 KiB a DNS message over TCP may have."""
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
        """Whether a set is in the zone, not made up from a wildcard: an update that only asks (RFC 2136, 2.4.1)."""
        import dns.rcode

        question = _lexicon_provider(self._settings, self._zone, 0)
        code = question.ask_for(key, self.where)
        if code in (dns.rcode.NXRRSET, dns.rcode.NXDOMAIN):
            return False
        if code != dns.rcode.NOERROR:
            raise _refused(self.where, self._zone, dns.rcode.to_text(code))
        return True

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        if changes:
            await asyncio.to_thread(self._change, changes, ttl, now)

    def _change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        provider = _lexicon_provider(self._settings, self._zone, ttl)
        for key in {change.key: None for change in changes if not change.remove}:
            if any(held != ttl for held in now.get(key, {}).values()):
                provider.renew(key, now[key])
        for change in changes:
            name, kind = change.key
            content = spelled(kind, change.value)
            if change.remove:
                provider.delete_record(rtype=kind, name=name + ".", content=content)
            else:
                provider.create_record(kind, name + ".", content)
        provider.flush(self.where)

    async def prove_writable(self, name: str) -> None:
        """One message that adds a value and removes it again: what it leaves is what there was, its serial too."""
        nothing = Change(key=(name, "TXT"), value="metal-ipi")
        await self.change([nothing, replace(nothing, remove=True)], _PROBE_TTL, {})

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        primary = await self.primary()
        if self._others is None:
            everybody = await servers_of(self._zone, primary) if self._settings.propagation.everywhere else []
            self._others = [server for server in everybody if server.address != primary.address]
        servers = [primary, *self._others]
        answers = await asyncio.gather(*(ask_all(server, keys) for server in servers))
        return [(str(server), found) for server, found in zip(servers, answers, strict=True)]


def _wildcards(key: Key, zone: str) -> list[Key]:
    """The wildcards that may answer for a name."""
    labels = key[0].removesuffix(zone).split(".")[:-1] if key[0] != zone else []
    above = [".".join([*labels[start:], zone]) for start in range(1, len(labels) + 1)]
    return [(f"*.{name}", key[1]) for name in above]


_TSIG_CODES = {"PeerBadKey": "BADKEY", "PeerBadSignature": "BADSIG", "PeerBadTime": "BADTIME"}
_REMEDIES = {
    "REFUSED": "the key may not update this zone, see the server's ACL",
    "NOTAUTH": "the server does not know the TSIG key or is not the zone's primary",
    "NOTZONE": "a record is outside the zone",
    "BADKEY": "the server does not know the TSIG key's name; see dns.tsig.name",
    "BADSIG": "the TSIG secret is not the server's; see dns.tsig.secret",
    "NXRRSET": "somebody else changed the same records meanwhile",
    "BADTIME": "the clocks of this machine and the server differ",
}


def _lexicon_provider(settings: Rfc2136Settings, zone: str, ttl: int) -> Any:
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
                    together.prerequisite.extend(other.prerequisite)
                    together.update.extend(other.update)
                code = self._send(together, where)
                if code != dns.rcode.NOERROR:
                    raise _refused(where, zone, dns.rcode.to_text(code))

        def renew(self, key: Key, values: Iterable[str]) -> None:
            """Gives a set another TTL, which all its values share: Knot keeps the old one while any of them stands.

            All are taken away and added anew, within one message; only if they are still those that were read.
            """
            message = dns.update.UpdateMessage(zone, keyring=self.keyring)
            data = [spelled(key[1], value) for value in sorted(values)]
            message.present(key[0] + ".", key[1], *data)
            message.delete(key[0] + ".", key[1])
            message.add(key[0] + ".", ttl, key[1], *data)
            self._waiting.append(message)

        def ask_for(self, key: Key, where: str) -> dns.rcode.Rcode:
            """The answer's code when a set must be there and nothing is to be changed."""
            message = dns.update.UpdateMessage(zone, keyring=self.keyring)
            message.present(key[0] + ".", key[1])
            return self._send(message, where)

        def _send(self, message: dns.update.UpdateMessage, where: str) -> dns.rcode.Rcode:
            try:
                answer = dns.query.tcp(message, address_of(settings.server), timeout=10, port=settings.port)
            except dns.tsig.PeerError as error:
                raise _refused(where, zone, _TSIG_CODES.get(type(error).__name__, _reason(error))) from None
            except (dns.exception.Timeout, EOFError, OSError) as error:
                raise RemoteError(f"{where} does not answer: {_reason(error)}", passing=True) from None
            except dns.exception.DNSException as error:
                raise _refused(where, zone, _reason(error)) from None
            return answer.rcode()

    token = f"{settings.tsig.algorithm}:{settings.tsig.name}:{settings.tsig.secret}"
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


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _refused(where: str, zone: str, reason: str) -> RemoteError:
    remedy = _REMEDIES.get(reason)
    message = f"{where} did not take the update of zone {zone}: {reason}{': ' + remedy if remedy else ''}"
    return RemoteError(message, passing=reason in ("SERVFAIL", "NXRRSET"))
