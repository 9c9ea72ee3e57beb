"""CoreOS's live ISO as the stream names it: fetched once per release and user, and kept without its root file system.

The whole ISO is checked against the stream's SHA-256 before anything is made of it. What is kept is named after that
hash, and checked against its own whenever it is used. Killed while fetching: a file of another name is left over, which
the next run writes anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

from provider.bmc_settings import LiveIso
from provider.errors import RemoteError
from provider.live_iso import LiveIsoError, minimal

Tell = Callable[[str], Awaitable[None]]
_TIMEOUT = 60
_PIECE = 1 << 20
_MIB = 1 << 20

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""All servers of a rack want the same one at the same time: the first fetches it."""


def directory() -> Path:
    """Where they are kept; made where it is missing."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(home) / "metal-ipi" / "live-iso"
    path.mkdir(parents=True, exist_ok=True)
    return path


async def minimal_iso(iso: LiveIso, tell: Tell) -> Path:
    """The file of the ISO without its root file system. Raises RemoteError and LiveIsoError."""
    path = directory() / f"{iso.sha256}.iso"
    async with _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        if not await asyncio.to_thread(_is_whole, path):
            await _make(iso, path, tell)
    return path


def _checksum(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _is_whole(path: Path) -> bool:
    try:
        wanted = _checksum(path).read_text().strip()
        with path.open("rb") as file:
            return _hash(file) == wanted
    except FileNotFoundError:
        return False


def _hash(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


async def _make(iso: LiveIso, path: Path, tell: Tell) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".whole-") as whole:
        found = await _fetch(iso.url, whole, tell)
        if found != iso.sha256:
            raise LiveIsoError(
                f"{iso.url} has the SHA-256 {found}, and the stream says {iso.sha256}: have that server give the file "
                "of that release, or correct boot.streamUrl (boot.streamFile)"
            )
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            digest = await asyncio.to_thread(minimal.unpack, whole, out)
        _checksum(path).write_text(f"{digest}\n")
        part.replace(path)


async def _fetch(url: str, out: IO[bytes], tell: Tell) -> str:
    """Writes a file; answers its SHA-256."""
    import httpx

    digest, size, told = hashlib.sha256(), 0, 0
    try:
        async with (
            httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=True) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                raise RemoteError(f"{url}, CoreOS's live ISO, is answered with HTTP {answer.status_code}")
            whole = answer.headers.get("Content-Length", "")
            async for piece in answer.aiter_bytes(_PIECE):
                digest.update(piece)
                out.write(piece)
                size += len(piece)
                if size - told >= 32 * _MIB:
                    told = size
                    of = f" of {int(whole) // _MIB}" if whole.isdecimal() else ""
                    await tell(f"fetching CoreOS's live ISO, {size // _MIB}{of} MiB")
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise RemoteError(f"{url}, CoreOS's live ISO, cannot be fetched: {reason}", passing=True) from None
    return digest.hexdigest()
