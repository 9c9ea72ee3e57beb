"""Artifacts in an S3 bucket. Its policy must let machines read objects they know the name of, and list nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from metal_ipi.provider.configuration import S3ArtifactSettings
from metal_ipi.provider.errors import RemoteError


class _Source:
    """Parts of an event loop's, as a file that another thread reads."""

    def __init__(self, parts: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._parts, self._loop = parts, loop
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, fewer only at the end."""
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
    """See `ArtifactStore`. Writing an object is atomic; directories do not exist, only keys."""

    def __init__(self, settings: S3ArtifactSettings) -> None:
        self._settings = settings

    async def put(self, directory: str, files: Mapping[str, bytes], *, listed: bool = False) -> None:
        def work(client: Any) -> None:
            for name, content in files.items():
                client.put_object(Bucket=self._settings.bucket, Key=self._key(directory, name), Body=content)

        await asyncio.to_thread(self._with_client, work)

    async def receive(self, directory: str, name: str, parts: AsyncIterator[bytes], *, writer: str) -> None:
        """An object is there when its last part was taken: who reads an error out of `parts` never gets so far."""
        source, key = _Source(parts, asyncio.get_running_loop()), self._key(directory, name)

        def work(client: Any) -> None:
            client.upload_fileobj(source, self._settings.bucket, key)

        await asyncio.to_thread(self._with_client, work)

    async def read(self, directory: str, name: str) -> bytes:
        found: list[bytes] = []

        def work(client: Any) -> None:
            answer = client.get_object(Bucket=self._settings.bucket, Key=self._key(directory, name))
            found.append(answer["Body"].read())

        await asyncio.to_thread(self._with_client, work)
        return found[0]

    async def sizes(self, directory: str, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}

        def work(client: Any) -> None:
            for name in names:
                key = self._key(directory, name)
                page = client.list_objects_v2(Bucket=self._settings.bucket, Prefix=key)
                for each in page.get("Contents", []):
                    if each["Key"] == key:
                        found[name] = int(each["Size"])

        await asyncio.to_thread(self._with_client, work)
        return found

    async def hashes(self, directory: str, names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}

        def work(client: Any) -> None:
            for name in names:
                try:
                    answer = client.get_object(Bucket=self._settings.bucket, Key=self._key(directory, name))
                except client.exceptions.NoSuchKey:
                    continue
                found[name] = f"sha512-{hashlib.sha512(answer['Body'].read()).hexdigest()}"

        await asyncio.to_thread(self._with_client, work)
        return found

    async def names(self, directory: str) -> list[str]:
        found: list[str] = []
        start = f"{self._key(directory, '')}/"

        def work(client: Any) -> None:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=self._settings.bucket, Prefix=start):
                found.extend(str(item["Key"])[len(start) :] for item in page.get("Contents", []))

        await asyncio.to_thread(self._with_client, work)
        return found

    async def delete(self, directory: str, names: Sequence[str]) -> None:
        def work(client: Any) -> None:
            for name in names:
                client.delete_object(Bucket=self._settings.bucket, Key=self._key(directory, name))

        await asyncio.to_thread(self._with_client, work)

    def _key(self, directory: str, name: str) -> str:
        return "/".join(part for part in (self._settings.prefix, directory, name) if part)

    def _with_client(self, work: Any) -> None:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise RemoteError("artifacts of type s3 need the Python package boto3: install it") from None
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
            work(client)
        except (BotoCoreError, ClientError) as error:
            raise RemoteError(f"bucket {settings.bucket} in {settings.region} cannot be used: {error}") from None
        finally:
            client.close()
