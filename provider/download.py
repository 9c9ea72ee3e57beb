"""Downloads a large file in parts: resumes after a broken connection, and checks the hash at the end."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.status import Say

if TYPE_CHECKING:
    import httpx

_PART = 1 << 20
_PATIENCE = 120.0
"""Seconds for which a server may send nothing."""
_OK, _PARTIAL = 200, 206


class WrongHash(RemoteError):
    """The file has another hash than expected."""


async def checked(client: httpx.AsyncClient, url: str, sha256: str, tell: Say) -> AsyncGenerator[bytes]:
    """Yield the file's parts. Raises WrongHash after the last one if the hash differs, and RemoteError."""
    digest = hashlib.sha256()
    async with aclosing(_parts(client, url, tell)) as parts:
        async for part in parts:
            digest.update(part)
            yield part
    if digest.hexdigest() != sha256:
        raise WrongHash(f"{url} has the SHA-256 {digest.hexdigest()}, but the stream metadata say {sha256}")


async def _parts(client: httpx.AsyncClient, url: str, tell: Say) -> AsyncGenerator[bytes]:
    import httpx

    done, whole = 0, False
    backoff = Backoff(timeout=_PATIENCE)
    while not whole:
        begun = done
        try:
            async with aclosing(_from(client, url, done)) as parts:
                async for part, total_text in parts:
                    done += len(part)
                    await tell(f"copying {url}: {done >> 20} MiB{total_text}")
                    yield part
            whole = True
        except (httpx.HTTPError, RemoteError) as error:
            if isinstance(error, RemoteError) and not error.passing:
                raise
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RemoteError(f"{url}: its TLS certificate is not trusted ({error})") from None
            if done > begun:
                backoff = Backoff(timeout=_PATIENCE)
            if backoff.over:
                why = str(error) or type(error).__name__
                raise RemoteError(
                    f"{url} cannot be downloaded completely ({done} bytes were received): {why}"
                ) from None
            await tell(f"{url}: the connection broke after {done} bytes; trying again")
            await backoff.pause()


async def _from(client: httpx.AsyncClient, url: str, start: int) -> AsyncGenerator[tuple[bytes, str]]:
    """The parts from a byte offset on, each with the total size as text."""
    # A compressed transfer would have other bytes and other ranges.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    async with client.stream("GET", url, headers=headers) as answer:
        if answer.status_code not in (_OK, _PARTIAL):
            passing = answer.status_code >= 500 or answer.status_code == 429
            raise RemoteError(f"{url} answers HTTP {answer.status_code}", passing=passing)
        known = 0 if answer.status_code == _OK else start
        behind = start - known  # a server without ranges sends the file from its start again
        total_text = _mib(answer.headers.get("Content-Length"), known)
        async for part in answer.aiter_raw(_PART):
            fresh = part[behind:]
            behind = max(0, behind - len(part))
            if fresh:
                yield fresh, total_text


def _mib(length: str | None, known: int) -> str:
    return f" of {(known + int(length)) >> 20}" if length is not None and length.isdigit() else ""
