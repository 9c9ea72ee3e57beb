"""Artifacts in an S3 bucket. Its policy must let machines read objects whose keys they know, and must not let them
list."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from metal_ipi.provider.artifact_stores.names import sha512
from metal_ipi.provider.configuration import S3ArtifactSettings
from metal_ipi.provider.errors import RemoteError

_T = TypeVar("_T")


class _Source:
    """A file object that another thread reads; its content comes from an asynchronous iterator of the event loop."""

    def __init__(self, parts: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._parts, self._loop = parts, loop
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        found = [self._rest]
        length = len(self._rest)
        while size < 0 or length < size:
            part = asyncio.run_coroutine_threadsafe(anext(self._parts, b""), self._loop).result()
            if not part:
                break
            found.append(part)
            length += len(part)
        whole = b"".join(found)
        wanted = len(whole) if size < 0 else size
        self._rest = whole[wanted:]
        return whole[:wanted]


class S3Store:
    """See `ArtifactStore`. Writing an object is atomic; directories are only prefixes of keys."""

    def __init__(self, settings: S3ArtifactSettings) -> None:
        self._settings = settings

    async def put(self, directory: str, files: Mapping[str, bytes], *, listed: bool = False) -> None:
        def work(client: Any) -> None:
            for name, content in files.items():
                client.put_object(Bucket=self._settings.bucket, Key=self._key(directory, name), Body=content)

        await self._with_client(work)

    async def receive(self, directory: str, name: str, parts: AsyncIterator[bytes], *, writer: str) -> None:
        """S3 creates the object only after its last part, so an error in `parts` leaves no incomplete object."""
        source, key = _Source(parts, asyncio.get_running_loop()), self._key(directory, name)

        def work(client: Any) -> None:
            client.upload_fileobj(source, self._settings.bucket, key)

        await self._with_client(work)

    async def read(self, directory: str, name: str) -> bytes:
        def work(client: Any) -> bytes:
            return client.get_object(Bucket=self._settings.bucket, Key=self._key(directory, name))["Body"].read()

        return await self._with_client(work)

    async def sizes(self, directory: str, names: Sequence[str]) -> dict[str, int]:
        def work(client: Any) -> dict[str, int]:
            found: dict[str, int] = {}
            for name in names:
                key = self._key(directory, name)
                page = client.list_objects_v2(Bucket=self._settings.bucket, Prefix=key)
                for each in page.get("Contents", []):
                    if each["Key"] == key:
                        found[name] = int(each["Size"])
            return found

        return await self._with_client(work)

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        def work(client: Any) -> dict[str, str]:
            found: dict[str, str] = {}
            for name in names:
                with contextlib.suppress(client.exceptions.NoSuchKey):
                    answer = client.get_object(Bucket=self._settings.bucket, Key=self._key(directory, name))
                    found[name] = sha512(answer["Body"].read())
            return found

        return await self._with_client(work)

    async def names(self, directory: str) -> list[str]:
        start = f"{self._key(directory, '')}/"

        def work(client: Any) -> list[str]:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._settings.bucket, Prefix=start)
            return [str(item["Key"])[len(start) :] for page in pages for item in page.get("Contents", [])]

        return await self._with_client(work)

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        def work(client: Any) -> None:
            for name in names:
                client.delete_object(Bucket=self._settings.bucket, Key=self._key(directory, name))

        await self._with_client(work)

    def _key(self, directory: str, name: str) -> str:
        return "/".join(part for part in (self._settings.prefix, directory, name) if part)

    async def _with_client(self, work: Callable[[Any], _T]) -> _T:
        """Run `work` with a client, in a thread. Raises RemoteError."""
        return await asyncio.to_thread(self._work, work)

    def _work(self, work: Callable[[Any], _T]) -> _T:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        settings = self._settings
        client = boto3.client(
            "s3",
            region_name=settings.region,
            endpoint_url=settings.endpoint,
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            config=Config(retries={"mode": "standard", "max_attempts": 5}),
        )
        try:
            return work(client)
        except (BotoCoreError, ClientError) as error:
            raise RemoteError(f"bucket {settings.bucket} in {settings.region} cannot be used: {error}") from None
        finally:
            client.close()
