"""Where artifacts are kept: one protocol, an SFTP host or an S3 bucket behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.configuration import ArtifactSettings, S3ArtifactSettings
from metal_ipi.provider.errors import RemoteError

_TIMEOUT = 60
"""How long a store may be tried again, in seconds."""
_T = TypeVar("_T")


class ArtifactStore(Protocol):
    """Files in one-level directories whose names cannot be guessed nor listed."""

    async def put(self, directory: str, files: Mapping[str, bytes], *, listed: bool = False) -> None:
        """Writes files, each one atomically: a reader sees the old or the new content. Makes the directory, which
        nobody else may list unless it is `listed`."""
        ...

    async def receive(self, directory: str, name: str, parts: AsyncIterator[bytes], *, writer: str) -> None:
        """Writes a large file from its parts, which are never all in memory. An error that `parts` raises is raised,
        and nothing of the file is there then, or what was there before. Two that write the same file at once are
        told apart by `writer`, a file name of their own: what is half written goes when that file is deleted."""
        ...

    async def read(self, directory: str, name: str) -> bytes:
        """A small file. Raises RemoteError where there is none."""
        ...

    async def sizes(self, directory: str, names: Sequence[str]) -> dict[str, int]:
        """How many bytes the files have that are there."""
        ...

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        """`sha512-<hex>` of the files that are there."""
        ...

    async def names(self, directory: str) -> list[str]:
        """The files of a directory; none where there is no such directory. Machines cannot list, its owner can."""
        ...

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        """Deletes files, and the directory when it is empty then. Finding nothing is fine."""
        ...


def open_store(settings: ArtifactSettings) -> ArtifactStore:
    """The store of a configuration; contacts nothing yet."""
    if isinstance(settings, S3ArtifactSettings):
        from metal_ipi.provider.artifact_stores.s3 import S3Store

        return S3Store(settings)
    from metal_ipi.provider.artifact_stores.ssh import SshStore

    return SshStore(settings)


async def persistently(
    work: Callable[[], Awaitable[_T]],
    tell: Callable[[str], Awaitable[None]] | None = None,
    *,
    timeout: float = _TIMEOUT,
) -> _T:
    """What `work` answers, which may be done twice; tries again what may pass by itself, and tells why."""
    backoff = Backoff(timeout=timeout)
    while True:
        try:
            return await work()
        except RemoteError as error:
            if backoff.over or not error.passing:
                raise
            if tell is not None:
                await tell(f"{error}; trying again")
        await backoff.pause()


__all__ = ["ArtifactStore", "open_store", "persistently"]
