"""Artifacts in an S3 bucket, as moto emulates it within this process."""

from __future__ import annotations

import asyncio

import pytest

from provider import configuration
from provider.artifact_stores import open_store
from provider.errors import RemoteError
from tests.provider.harness import Harness, Resource
from tests.provider.test_artifacts import inputs
from tests.provider.test_configuration import S3

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: artifacts in S3 are not tested")
moto = pytest.importorskip("moto", reason="moto is not installed: artifacts in S3 are not tested")


async def resource() -> Resource:
    harness = Harness({"artifacts": {**S3, "prefix": "/ignition/"}})
    await harness.configure()
    return Resource(harness, "Artifacts")


def test_whole_life() -> None:
    async def run() -> None:
        client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
        client.create_bucket(Bucket=S3["bucket"])

        def keys() -> list[str]:
            return [item["Key"] for item in client.list_objects_v2(Bucket=S3["bucket"]).get("Contents", [])]

        it = await resource()
        first = inputs(a_ign="one", b_ign="two")
        directory = (await it.up(first))["directory"]
        assert keys() == [f"ignition/{directory}/a.ign", f"ignition/{directory}/b.ign"]
        client.delete_object(Bucket=S3["bucket"], Key=f"ignition/{directory}/a.ign")
        await it.refresh()
        assert await it.changes(first) == ['files["a.ign"]']
        await it.up(inputs(a_ign="one"))
        assert keys() == [f"ignition/{directory}/a.ign"]
        await it.delete()
        await it.delete()
        assert keys() == []
        client.close()

    with moto.mock_aws():
        asyncio.run(run())


def test_a_missing_bucket_is_named() -> None:
    async def run() -> None:
        with pytest.raises(RemoteError, match=r"bucket boot-files in us-east-1 cannot be used: .*NoSuchBucket"):
            await (await resource()).up(inputs(a_ign="one"))

    with moto.mock_aws():
        asyncio.run(run())


def test_single_files() -> None:
    async def run() -> None:
        client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
        client.create_bucket(Bucket=S3["bucket"])
        found, _ = configuration.parse({"artifacts": S3})
        store = open_store(found.need_artifacts())
        await store.put("d", {"x.img": b"initrd"})
        assert await store.read("d", "x.img") == b"initrd"
        with pytest.raises(RemoteError, match="NoSuchKey"):
            await store.read("d", "y.img")
        client.close()

    with moto.mock_aws():
        asyncio.run(run())
