"""A server's disc on the artifact host: `<directory>/<digest>.iso`, there only while the server must boot it.

The directory's name is an HMAC of the machine's MAC address, with the artifact host's credentials as key: nobody else
can compute it, and every run finds it without a record. The digest is that of the boot script from which the disc was
made (`boot_tree.digest`). Whoever knows the URL (the BMC does) can read the disc: kernel arguments with the URL of the
live system's Ignition.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.artifact_stores.names import unguessable
from metal_ipi.provider.configuration import ArtifactSettings, S3ArtifactSettings, Settings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.status import Say

_WRITER = "boot.iso"
"""The writer's name for an incomplete disc (`ArtifactStore.receive`): one upload at a time in a directory."""
_PIECE = 1 << 20
_PLACE, _NAME = r"[A-Za-z0-9_-]{43}", r"[0-9a-f]{16}\.iso"


def directory(artifacts: ArtifactSettings, mac: str) -> str:
    """The name of the directory."""
    secret = artifacts.secret_access_key if isinstance(artifacts, S3ArtifactSettings) else artifacts.private_key
    return unguessable(secret, f"metal-ipi live-iso {mac.lower()}")


async def put(settings: Settings, mac: str, digest: str, disc: Path, tell: Say) -> None:
    """Upload a disc, and delete older ones."""
    artifacts = settings.need_artifacts()
    store, place, name = open_store(artifacts), directory(artifacts, mac), f"{digest}.iso"

    async def write() -> None:
        async with aclosing(_pieces(disc)) as pieces:
            await store.receive(place, name, pieces, writer=_WRITER)

    await persistently(write, tell)
    old = [each for each in await persistently(lambda: store.names(place), tell) if each != name]
    if old:
        await persistently(lambda: store.delete(place, old), tell)


async def digest_of(settings: Settings, mac: str) -> str:
    """The digest of the disc that is there; empty if there is none."""
    artifacts = settings.need_artifacts()
    store, place = open_store(artifacts), directory(artifacts, mac)
    found = [name for name in await persistently(lambda: store.names(place)) if re.fullmatch(_NAME, name)]
    return found[0].removesuffix(".iso") if found else ""


def url(settings: Settings, mac: str, digest: str) -> str:
    """The URL of a disc."""
    artifacts = settings.need_artifacts()
    return f"{artifacts.boot_base_url}/{directory(artifacts, mac)}/{digest}.iso"


async def url_now(settings: Settings, mac: str) -> str:
    """The URL of the disc that is there. Raises RemoteError if there is none."""
    digest = await digest_of(settings, mac)
    if not digest:
        raise RemoteError(
            f"there is no boot disc of the machine with the MAC address {mac} on the artifact host: run the same "
            "command again, which makes it"
        )
    return url(settings, mac, digest)


def is_url(settings: Settings, url: str) -> bool:
    """Whether a URL is that of one of our discs, for any server."""
    return bool(re.fullmatch(rf"{re.escape(settings.need_artifacts().boot_base_url)}/{_PLACE}/{_NAME}", url))


async def remove(settings: Settings, mac: str) -> None:
    """Delete a server's disc. A missing disc is not an error."""
    artifacts = settings.need_artifacts()
    store, place = open_store(artifacts), directory(artifacts, mac)
    names = await persistently(lambda: store.names(place))
    await persistently(lambda: store.delete(place, [*names, _WRITER]))  # _WRITER: delete incomplete uploads too


async def _pieces(disc: Path) -> AsyncGenerator[bytes, None]:
    with disc.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
