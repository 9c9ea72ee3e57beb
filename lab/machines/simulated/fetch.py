"""HTTP as a machine does it: from its own address, trusting what its image trusts and what its configuration adds.

Boot files are large and the same for all machines. The first machine downloads and hashes a file; the others ask for
it themselves, with the ETag, and are told by the server that it has not changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx

_CHUNK = 1 << 16
_KEEP = 1 << 20
"""Files up to this size are kept in memory: the simulated initramfs has to be read."""


class FetchError(OSError):
    """A download failed for good: HTTP status, or a body shorter than announced."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A downloaded boot file."""

    size: int
    sha256: str
    etag: str | None
    head: bytes
    """The content of a small file, the beginning of a large one."""


def client(address: str, trust: ssl.SSLContext) -> httpx.AsyncClient:
    """A client whose connections come from `address`. Each request has its own: a server closes one that it has not
    heard of for a while, just when the next request is on its way. iPXE opens such a connection again (`http_reopen`,
    src/net/tcp/httpcore.c)."""
    limits = httpx.Limits(max_keepalive_connections=0)
    transport = httpx.AsyncHTTPTransport(local_address=address, verify=trust, trust_env=False, limits=limits)
    return httpx.AsyncClient(transport=transport, follow_redirects=True, timeout=30.0, trust_env=False)


def trust_of(ca: Path, *more: str) -> ssl.SSLContext:
    """A context that trusts the authorities of a file and further ones (PEM); raises ssl.SSLError for bad ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=str(ca))
    for text in more:
        context.load_verify_locations(cadata=text)
    return context


def no_trust() -> ssl.SSLContext:
    """A context that takes any server for the right one: for what is checked by hash."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Downloads:
    """The files that any machine has downloaded already."""

    def __init__(self) -> None:
        self._known: dict[str, Download] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, http: httpx.AsyncClient, url: str) -> Download:
        """Download for one machine; raises FetchError and httpx.HTTPError."""
        async with self._locks.setdefault(url, asyncio.Lock()):
            known = self._known.get(url)
            if known is None or known.etag is None:
                known = self._known[url] = await _download(http, url, None)
                return known
        fresh = await _download(http, url, known)
        self._known[url] = fresh
        return fresh


async def _download(http: httpx.AsyncClient, url: str, known: Download | None) -> Download:
    headers = {"If-None-Match": known.etag} if known is not None and known.etag else {}
    async with http.stream("GET", url, headers=headers) as answer:
        if answer.status_code == 304 and known is not None:
            return known
        if answer.status_code != 200:
            raise FetchError(f"{answer.status_code} {answer.reason_phrase}")
        digest, size, head = hashlib.sha256(), 0, bytearray()
        async for chunk in answer.aiter_raw(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            if len(head) < _KEEP:
                head += chunk
        announced = answer.headers.get("content-length")
        if announced is not None and int(announced) != size:
            raise FetchError(f"got {size} of {announced} bytes")
        return Download(size=size, sha256=digest.hexdigest(), etag=answer.headers.get("etag"), head=bytes(head[:_KEEP]))
