"""Where artifacts are kept: one protocol, an SFTP host or an S3 bucket behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from provider.configuration import ArtifactSettings, S3ArtifactSettings


class ArtifactStore(Protocol):
    """Files in one-level directories whose names cannot be guessed nor listed."""

    async def put(self, directory: str, files: Mapping[str, bytes]) -> None:
        """Writes files, each one atomically: a reader sees the old or the new content. Makes the directory."""
        ...

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        """`sha512-<hex>` of the files that are there."""
        ...

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        """Deletes files, and the directory when it is empty then. Finding nothing is fine."""
        ...


def open_store(settings: ArtifactSettings) -> ArtifactStore:
    """The store of a configuration; contacts nothing yet."""
    if isinstance(settings, S3ArtifactSettings):
        from provider.artifact_stores.s3 import S3Store

        return S3Store(settings)
    from provider.artifact_stores.ssh import SshStore

    return SshStore(settings)


__all__ = ["ArtifactStore", "open_store"]
