"""The stores of artifacts: one interface, with an SFTP host or an S3 bucket behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.configuration import ArtifactSettings, S3ArtifactSettings
from metal_ipi.provider.errors import RemoteError

_TIMEOUT = 60
"""How long an operation on a store is retried, in seconds."""
_T = TypeVar("_T")


class ArtifactStore(Protocol):
    """Files in one-level directories, whose names machines can neither guess nor list."""

    async def put(self, directory: str, files: Mapping[str, bytes], *, listed: bool = False) -> None:
        """Write files, each one atomically: a reader sees the old or the new content. Creates the directory; machines
        can list it only if it is `listed`."""
        ...

    async def receive(self, directory: str, name: str, parts: AsyncIterator[bytes], *, writer: str) -> None:
        """Write a large file from its parts, without holding all of it in memory.

        An error of `parts` is raised again; then the file is unchanged, or still missing. `writer` is a file name that
        is unique to the writer, so that two can write the same file at once. An incomplete upload is removed when the
        file `writer` is deleted.
        """
        ...

    async def read(self, directory: str, name: str) -> bytes:
        """Read a small file. Raises RemoteError if there is none."""
        ...

    async def sizes(self, directory: str, names: Sequence[str]) -> dict[str, int]:
        """The sizes in bytes of those files that exist."""
        ...

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        """`sha512-<hex>` of those files that exist."""
        ...

    async def names(self, directory: str) -> list[str]:
        """The files of a directory; empty if there is no such directory. Only the owner of the store can list, not
        machines."""
        ...

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        """Delete files, and the directory if it is empty then. Missing files are no error."""
        ...


def open_store(settings: ArtifactSettings) -> ArtifactStore:
    """The store of a configuration; does not connect yet."""
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
    """Run `work`, which must be safe to repeat, and return its result. Retries transient errors and reports them."""
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
