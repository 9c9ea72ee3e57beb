"""HTTP downloads for the checks."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from metal_ipi.provider import web
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight.subject import Subject

if TYPE_CHECKING:
    import httpx

_TIMEOUT = 20


def opened(subject: Subject) -> httpx.AsyncClient:
    """A client that trusts the system's authorities and that of the artifact host."""
    return web.client(subject.settings, timeout=_TIMEOUT)


async def size_of(client: httpx.AsyncClient, url: str, subject: Subject) -> int | None:
    """The size of a file in bytes; None if the server does not tell. Raises RemoteError if the file cannot be
    fetched."""
    answer = await _request(client, "HEAD", url, subject)
    if answer.status_code == 405:  # some servers do not support HEAD
        async with client.stream("GET", url) as answer:
            pass
    _refuse(answer, url)
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


async def sha256_of(client: httpx.AsyncClient, url: str) -> str:
    """Downloads a file without storing it, and returns its hash."""
    import httpx

    digest = hashlib.sha256()
    try:
        async with client.stream("GET", url) as answer:
            _refuse(answer, url)
            async for part in answer.aiter_bytes():
                digest.update(part)
    except httpx.HTTPError as error:
        raise _unreachable(url, error) from None
    return digest.hexdigest()


async def content_of(client: httpx.AsyncClient, url: str, subject: Subject) -> bytes:
    """Downloads a small file."""
    answer = await _request(client, "GET", url, subject)
    _refuse(answer, url)
    return answer.content


async def _request(client: httpx.AsyncClient, method: str, url: str, subject: Subject) -> httpx.Response:
    import httpx

    try:
        answer = await client.request(method, url)
    except httpx.HTTPError as error:
        raise _unreachable(url, error) from None
    date = web.date_of(answer.headers)
    if date is not None and "Age" not in answer.headers:  # a cached answer has the time of its creation
        subject.clocks[urlsplit(url).netloc] = (date, datetime.now(UTC))
    return answer


def _refuse(answer: httpx.Response, url: str) -> None:
    if answer.status_code >= 400:
        raise RemoteError(f"{url} answers HTTP {answer.status_code}")


def _unreachable(url: str, error: Exception) -> RemoteError:
    return RemoteError(f"{url} cannot be fetched: {str(error) or type(error).__name__}")
