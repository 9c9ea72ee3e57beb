"""One URL of a configuration: fetched with Ignition's patience, decompressed, verified."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import httpx

from lab.machines.simulated import fetch
from lab.machines.simulated.ignition import IgnitionError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 1.0
"""Seconds between attempts: doubled each time, up to the longest, for ever (internal/resource/http.go).

Ignition's longest is 5 s. All that a simulated machine waits for takes seconds instead of minutes.
"""
_HEADERS = {
    "User-Agent": "Ignition/2.14.0",
    "Accept": "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1",
}
"""What Ignition says of itself; a machine config server converts its answer to this version of the specification."""


class Fetcher:
    """Fetches for one machine. Certificate authorities of the configuration are added to those of the system."""

    def __init__(
        self,
        address: str,
        ca: Path,
        log: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = address
        self._ca = ca
        self._log = log
        self._sleep = sleep
        self._authorities: tuple[str, ...] = ()
        self._client = fetch.client(address, fetch.trust_of(ca))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def trust(self, resources: list[dict[str, Any]]) -> None:
        """Trust these authorities as well, from now on."""
        texts: list[str] = []
        for entry in resources:
            texts.append((await self.read(entry)).decode(errors="replace"))
        if not texts or tuple(texts) == self._authorities:
            return
        try:
            context = fetch.trust_of(self._ca, *texts)
        except ssl.SSLError as error:
            raise IgnitionError(f"unable to decode PEM certificate: {error}") from error
        await self._client.aclose()
        self._client = fetch.client(self._address, context)
        self._authorities = tuple(texts)

    async def read(self, resource: dict[str, Any]) -> bytes:
        """The verified content of a resource; without a source it is empty."""
        source = resource.get("source")
        if not source:
            return b""
        scheme = urlsplit(source).scheme
        headers = {entry["name"]: entry.get("value") or "" for entry in resource.get("httpHeaders") or []}
        if scheme == "data":
            data = _data_url(source)
        elif scheme in ("http", "https"):
            data = await self.get(source, headers)
        else:
            raise IgnitionError(f"invalid url scheme: {scheme or source!r}")
        if resource.get("compression") == "gzip":
            try:
                data = gzip.decompress(data)
            except (OSError, EOFError) as error:
                raise IgnitionError(f"gzip: invalid header: {error}") from error
        _verify(data, (resource.get("verification") or {}).get("hash"))
        return data

    async def get(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        """GET: server and connection errors are tried again for ever, other statuses than 200 are fatal."""
        pause, attempt = _FIRST_PAUSE, 0
        while True:
            attempt += 1
            self._log(f"GET {url}: attempt #{attempt}")
            try:
                async with self._client.stream("GET", url, headers={**_HEADERS, **(headers or {})}) as answer:
                    self._log(f"GET result: {answer.reason_phrase}")
                    if answer.status_code == 404:
                        raise IgnitionError("resource not found")
                    if answer.status_code < 500 and answer.status_code not in (200, 204):
                        raise IgnitionError("failed to fetch resource")
                    if answer.status_code < 500:
                        return await answer.aread()
                    # What it says is not read, so this connection ends, and the name is asked anew.
            except httpx.HTTPError as error:
                self._log(f"GET error: {type(error).__name__}: {error}")
            await self._sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def post(self, url: str, body: dict[str, Any] | None) -> None:
        """POST once; a refusal is logged, as Ignition and Afterburn do not fail a boot for it."""
        try:
            answer = await (self._client.post(url, json=body) if body is not None else self._client.post(url))
            answer.raise_for_status()
        except httpx.HTTPError as error:
            self._log(f"POST Status error: {error}")


def _data_url(source: str) -> bytes:
    head, comma, body = source.partition(",")
    if not comma:
        raise IgnitionError("unable to parse url")
    raw = unquote_to_bytes(body)
    if not head.endswith(";base64"):
        return raw
    try:
        return base64.b64decode(raw, validate=True)
    except ValueError as error:
        raise IgnitionError(f"unable to parse url: {error}") from error


def _verify(data: bytes, wanted: str | None) -> None:
    if not wanted:
        return
    kind, _, digest = wanted.partition("-")
    if kind not in ("sha512", "sha256"):
        raise IgnitionError("unrecognized hash function")
    calculated = hashlib.new(kind, data).hexdigest()
    if calculated != digest:
        raise IgnitionError(f"hash verification failed (calculated {calculated} but expected {digest})")
