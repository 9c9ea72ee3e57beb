"""All services of dns-lexicon, such as Cloudflare: one record after the other; each change can be repeated.

Sets are read by listing all records of a type: filtering by name would take one call for each name, and services
throttle. Lexicon's providers do their own HTTP, some without a timeout; here a call is abandoned after 120 s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from metal_ipi.provider import lexicon_services
from metal_ipi.provider.dns_services import Change, Found, Key, Throttled, canonical, spelled
from metal_ipi.provider.dns_services.authorities import ask_each, servers_of
from metal_ipi.provider.dns_settings import LexiconSettings
from metal_ipi.provider.errors import InvalidInputs, ProviderError, RemoteError
from metal_ipi.provider.web import retry_after

_CALL_TIMEOUT = 120.0
_QUOTES_TEXT = frozenset({"cloudflare"})
"""Services that need quotation marks around the text of a TXT record; for the others lexicon adds them."""
_SERVER_ERROR = 500
_PROBE_TTL = 300
"""The TTL of the test record; some services have a minimum of 120."""
_CREDENTIAL_CODES = (": 6003 ", ": 6111 ")
"""Cloudflare's error codes for an invalid token, which come with HTTP 400."""
Result = TypeVar("Result")


class LexiconService:
    """A zone at one of lexicon's services."""

    def __init__(self, settings: LexiconSettings, zone: str) -> None:
        self._settings = settings
        self._zone = zone
        self._opened: dict[int, Any] = {}

    @property
    def where(self) -> str:
        return f"DNS service {self._settings.name}"

    async def read(self, keys: Iterable[Key]) -> Found:
        wanted = set(keys)
        kinds = sorted({kind for _, kind in wanted if kind != "TXT"} | ({"CNAME"} if wanted else set[str]()))
        # Markers last: a marker is added before its value, so the marker of each value that was read is seen too.
        kinds += ["TXT"] if any(kind == "TXT" for _, kind in wanted) else []
        names = {name for name, _ in wanted}
        found: dict[Key, dict[str, int]] = {}
        for kind in kinds:
            for record in await self._call(lambda provider, kind=kind: provider.list_records(rtype=kind)):
                key = (self._full(str(record["name"])), kind)
                if key in wanted or (kind == "CNAME" and key[0] in names):
                    values = found.setdefault(key, {})
                    values[canonical(kind, str(record["content"]))] = int(record.get("ttl") or 0)
        return found

    def _full(self, name: str) -> str:
        plain = name.rstrip(".").lower()
        if plain in ("", "@"):
            return self._zone
        return plain if plain == self._zone or plain.endswith("." + self._zone) else f"{plain}.{self._zone}"

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        for change in changes:
            held = now.get(change.key, {}).get(change.value)
            if change.remove:
                await self._remove(change)
            elif held is not None and held != ttl:
                await self._call(lambda provider, change=change: self._set_ttl(provider, change), ttl)
            elif held is None:
                await self._add(change, ttl)

    async def _add(self, change: Change, ttl: int) -> None:
        name, kind = change.key
        content = self._content(kind, change.value)
        if not await self._call(lambda provider: provider.create_record(kind, name, content), ttl):
            raise RemoteError(f"{self.where} did not accept {name} {kind} {change.value}, and gave no reason")

    async def _remove(self, change: Change) -> None:
        """Remove the record by its id if the service has ids: then exactly the record that was read."""

        def work(provider: Any) -> bool:
            return all(provider.delete_record(record["id"]) for record in self._records(provider, change))

        if not await self._call(work):
            raise RemoteError(f"{self.where} did not remove {change.key[0]} {change.key[1]}, and gave no reason")

    def _set_ttl(self, provider: Any, change: Change) -> None:
        name, kind = change.key
        for record in self._records(provider, change):
            provider.update_record(record["id"], kind, name, self._content(kind, change.value))

    def _records(self, provider: Any, change: Change) -> list[Mapping[str, Any]]:
        name, kind = change.key
        listed: list[Mapping[str, Any]] = provider.list_records(rtype=kind, name=name)
        return [
            record
            for record in listed
            if self._full(str(record["name"])) == name and canonical(kind, str(record["content"])) == change.value
        ]

    def _content(self, kind: str, value: str) -> str:
        if kind == "TXT":
            return spelled(kind, value) if self._settings.name in _QUOTES_TEXT else value
        return spelled(kind, value).rstrip(".") if self._settings.name in _QUOTES_TEXT else spelled(kind, value)

    async def prove_writable(self, name: str) -> None:
        """The only way to find out is to write: add a value, and remove it again."""
        value = Change(key=(name, "TXT"), value="metal-ipi")
        await self._add(value, _PROBE_TTL)
        await self._remove(replace(value, remove=True))

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        if not self._settings.propagation.everywhere:
            return [(self.where, await self.read(keys))]
        return await ask_each(await servers_of(self._zone), keys)

    async def _call(self, work: Callable[[Any], Result], ttl: int = 0) -> Result:
        """Run `work` with the service's provider; its TTL is part of the provider's configuration."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._run, work, ttl), _CALL_TIMEOUT)
        except TimeoutError:
            raise RemoteError(f"{self.where} does not answer within {_CALL_TIMEOUT:g} s", passing=True) from None

    def _run(self, work: Callable[[Any], Result], ttl: int) -> Result:
        import requests
        from lexicon.exceptions import LexiconError

        try:
            if ttl not in self._opened:
                self._opened[ttl] = self._open(ttl)
            return work(self._opened[ttl])
        except requests.HTTPError as error:
            raise self._worded(error) from None
        except (requests.ConnectionError, requests.Timeout) as error:
            raise RemoteError(f"{self.where} does not answer: {type(error).__name__}", passing=True) from None
        except LexiconError as error:
            raise RemoteError(
                f"{self.where} gives no access to zone {self._zone}: {error}; check dns.zone and the credentials"
            ) from None
        except ProviderError:
            raise
        except Exception as error:  # lexicon's providers raise plain Exception, and fail on unexpected answers
            message = f"{self.where} gave an answer that dns-lexicon cannot use: {type(error).__name__}: {error}"
            raise RemoteError(message) from error

    def _worded(self, error: Any) -> RemoteError:
        status = int(error.response.status_code)
        if status == 429:
            return Throttled(
                f"{self.where} limits requests (HTTP 429)", retry_after=retry_after(error.response.headers)
            )
        said = _error_text(error.response)
        if status in (401, 403) or any(code in said for code in _CREDENTIAL_CODES):
            setting = "dns.authToken" if self._settings.name == "cloudflare" else "dns.options"
            return RemoteError(
                f"{self.where} does not accept the credentials ({status}{said}): expired, wrong, or without rights on "
                f"zone {self._zone}; set {setting} anew"
            )
        message = f"{self.where} answers {status}{said}, zone {self._zone}"
        return RemoteError(message, passing=status >= _SERVER_ERROR)

    def _open(self, ttl: int) -> Any:
        from lexicon.config import ConfigResolver

        settings = self._settings
        config: dict[str, Any] = {"provider_name": settings.name, "domain": self._zone, "ttl": ttl or None}
        config[settings.name] = dict(settings.options)
        provider = provider_class(settings.name)(ConfigResolver().with_dict(config))
        if settings.endpoint is not None:
            provider.api_endpoint = settings.endpoint.rstrip("/")
        provider.authenticate()
        return provider


def provider_class(name: str) -> Any:
    """lexicon's class for a service. Raises InvalidInputs for an unknown name, and if packages are missing."""
    available = lexicon_services.services()
    if name not in available:
        raise InvalidInputs(f"dns-lexicon has no service {name}; correct dns.service")
    if not available[name]:
        raise InvalidInputs(f"service {name} needs more packages: pip install 'dns-lexicon[{name}]'")
    return lexicon_services.service_class(name)


def _error_text(response: Any) -> str:
    """The service's error message, if it is JSON in Cloudflare's format; never a whole page."""
    try:
        errors = response.json()["errors"]
        return ": " + "; ".join(f"{error['code']} {error['message']}" for error in errors)
    except (ValueError, KeyError, TypeError):
        return ""
