"""Artifacts on a host reached over SFTP, from which a web server serves them. The host key is pinned."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from metal_ipi.provider.artifact_stores.names import sha512
from metal_ipi.provider.configuration import SshArtifactSettings
from metal_ipi.provider.errors import ProviderError, RemoteError

_DIRECTORY_MODE = 0o711
"""The web server may open files whose names it knows, but not list the directory."""
_FILE_MODE = 0o644
_TIMEOUT = 30


class SshStore:
    """See `ArtifactStore`."""

    def __init__(self, settings: SshArtifactSettings) -> None:
        self._settings = settings

    async def put(self, directory: str, files: Mapping[str, bytes], *, listed: bool = False) -> None:
        if not files:
            return
        path = self._path(directory)
        async with self._open() as sftp:
            await sftp.makedirs(path, exist_ok=True)
            if not listed:
                await sftp.chmod(path, _DIRECTORY_MODE)
            for name, content in files.items():
                temporary = f"{path}/.{name}.part"
                async with sftp.open(temporary, "wb") as file:
                    await file.write(content)
                await sftp.chmod(temporary, _FILE_MODE)
                await sftp.posix_rename(temporary, f"{path}/{name}")

    async def receive(self, directory: str, name: str, parts: AsyncIterator[bytes], *, writer: str) -> None:
        path = self._path(directory)
        temporary = f"{path}/.{writer}.part"
        async with self._open() as sftp:
            await sftp.makedirs(path, exist_ok=True)
            await sftp.chmod(path, _DIRECTORY_MODE)
            try:
                async with sftp.open(temporary, "wb") as file:
                    async for part in parts:
                        await file.write(part)
                await sftp.chmod(temporary, _FILE_MODE)
                await sftp.posix_rename(temporary, f"{path}/{name}")
            except ProviderError:
                await sftp.remove(temporary)
                raise

    async def read(self, directory: str, name: str) -> bytes:
        async with self._open() as sftp, sftp.open(f"{self._path(directory)}/{name}", "rb") as file:
            return await file.read()

    async def sizes(self, directory: str, names: Sequence[str]) -> dict[str, int]:
        import asyncssh

        found: dict[str, int] = {}
        async with self._open() as sftp:
            for name in names:
                with contextlib.suppress(asyncssh.SFTPNoSuchFile):
                    found[name] = int((await sftp.stat(f"{self._path(directory)}/{name}")).size)
        return found

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        import asyncssh

        found: dict[str, str] = {}
        async with self._open() as sftp:
            for name in names:
                with contextlib.suppress(asyncssh.SFTPNoSuchFile):
                    async with sftp.open(f"{self._path(directory)}/{name}", "rb") as file:
                        found[name] = sha512(await file.read())
        return found

    async def names(self, directory: str) -> list[str]:
        import asyncssh

        async with self._open() as sftp:
            try:
                found = await sftp.listdir(self._path(directory))
            except asyncssh.SFTPNoSuchFile:
                return []
        return [str(name) for name in found if not str(name).startswith(".")]

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        import asyncssh

        path = self._path(directory)
        async with self._open() as sftp:
            for name in names:
                for leftover in (f"{path}/{name}", f"{path}/.{name}.part"):
                    with contextlib.suppress(asyncssh.SFTPNoSuchFile):
                        await sftp.remove(leftover)
            # A directory that has files of a later run, or that is gone already, is left alone.
            with contextlib.suppress(asyncssh.SFTPNoSuchFile, asyncssh.SFTPDirNotEmpty, asyncssh.SFTPFailure):
                await sftp.rmdir(path)

    def _path(self, directory: str) -> str:
        return f"{self._settings.directory.rstrip('/')}/{directory}"

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Any, None]:
        import asyncssh

        settings = self._settings
        where = f"artifact host {settings.host} port {settings.port}"
        try:
            async with (
                asyncssh.connect(
                    settings.host,
                    settings.port,
                    username=settings.user,
                    client_keys=[asyncssh.import_private_key(settings.private_key)],
                    known_hosts=([asyncssh.import_public_key(settings.host_key)], [], []),
                    agent_path=None,
                    config=None,
                    connect_timeout=_TIMEOUT,
                    keepalive_interval=_TIMEOUT / 2,
                ) as connection,
                connection.start_sftp_client() as sftp,
            ):
                yield sftp
        except asyncssh.HostKeyNotVerifiable:
            raise RemoteError(f"{where} shows another SSH host key than the pinned one: correct `hostKey`") from None
        except asyncssh.PermissionDenied:
            raise RemoteError(f"{where} refuses the login of {settings.user}: correct `user` or `privateKey`") from None
        except asyncssh.KeyImportError:
            raise RemoteError(f"{where}: `privateKey` or `hostKey` cannot be read") from None
        except asyncssh.SFTPError as error:
            raise RemoteError(f"{where}, directory {settings.directory}: {error.reason}") from None
        except (asyncssh.Error, OSError) as error:
            reason = str(error) or type(error).__name__
            raise RemoteError(f"{where} cannot be used: {reason}", passing=True) from None
