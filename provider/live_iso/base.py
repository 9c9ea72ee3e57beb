"""CoreOS's live ISO from the stream: fetched once for each release and user, and stored without its root file system.

The whole ISO is checked against the stream's SHA-256 before it is used. The stored file is named after that hash, and
checked against its own hash at each use. Killed while fetching: files with other names are left, which nothing reads.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path

from metal_ipi.provider import download, web
from metal_ipi.provider.bmc_settings import LiveIso
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.live_iso import LiveIsoError, minimal
from metal_ipi.provider.per_loop import PerLoop
from metal_ipi.provider.status import Say

_TIMEOUT = 60

_lock = PerLoop(asyncio.Lock)
"""All servers of a rack need the same file at the same time; only the first one fetches it."""


def directory() -> Path:
    """The directory of stored ISOs; created if missing."""
    path = user_cache_path("metal-ipi", appauthor=False) / "live-iso"
    path.mkdir(parents=True, exist_ok=True)
    return path


async def minimal_iso(settings: Settings, iso: LiveIso, tell: Say) -> Path:
    """The file of the ISO without its root file system. Raises RemoteError and LiveIsoError."""
    path = directory() / f"{iso.sha256}.iso"
    async with _lock.get():
        if not await asyncio.to_thread(_is_whole, path):
            await _make(settings, iso, path, tell)
    return path


def _checksum(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _is_whole(path: Path) -> bool:
    try:
        wanted = _checksum(path).read_text().strip()
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == wanted
    except FileNotFoundError:
        return False


async def _make(settings: Settings, iso: LiveIso, path: Path, tell: Say) -> None:
    # Another stack may make the same file at the same time, so the incomplete file has a name of its own.
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with tempfile.TemporaryFile(dir=path.parent) as whole:
            await _fetch(settings, iso, whole, tell)
            with part.open("wb") as out:
                digest = await asyncio.to_thread(minimal.unpack, whole, out)
        _checksum(path).write_text(f"{digest}\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


async def _fetch(settings: Settings, iso: LiveIso, out: IO[bytes], tell: Say) -> None:
    """Write the whole ISO, and check it. It may come from the site's own web server, so `artifacts.caBundle` is
    trusted."""
    try:
        async with (
            web.client(settings, timeout=_TIMEOUT) as client,
            aclosing(download.checked(client, iso.url, iso.sha256, tell)) as parts,
        ):
            async for part in parts:
                out.write(part)
    except download.WrongHash as error:
        raise LiveIsoError(
            f"{error}: put the file of that release on that server, or correct boot.streamUrl (boot.streamFile)"
        ) from None
    except RemoteError as error:
        raise RemoteError(f"CoreOS's live ISO cannot be fetched: {error}", passing=error.passing) from None
