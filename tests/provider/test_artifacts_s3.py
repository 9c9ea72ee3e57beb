"""Artifacts in an S3 bucket, as moto emulates it within this process."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider import configuration
from metal_ipi.provider.artifact_stores import open_store
from metal_ipi.provider.errors import RemoteError
from tests.provider.harness import Harness, Resource
from tests.provider.test_artifacts import inputs
from tests.provider.test_configuration import S3


async def resource() -> Resource:
    harness = Harness({"artifacts": {**S3, "prefix": "/ignition/"}})
    await harness.configure()
    return Resource(harness, "Artifacts")


async def test_whole_life(bucket: Any) -> None:
    def keys() -> list[str]:
        return [item["Key"] for item in bucket.list_objects_v2(Bucket=S3["bucket"]).get("Contents", [])]

    it = await resource()
    first = inputs(a_ign="one", b_ign="two")
    directory = (await it.up(first))["directory"]
    assert keys() == [f"ignition/{directory}/a.ign", f"ignition/{directory}/b.ign"]
    bucket.delete_object(Bucket=S3["bucket"], Key=f"ignition/{directory}/a.ign")
    await it.refresh()
    assert await it.changes(first) == ['files["a.ign"]']
    await it.up(inputs(a_ign="one"))
    assert keys() == [f"ignition/{directory}/a.ign"]
    await it.delete()
    await it.delete()
    assert keys() == []


async def test_a_missing_bucket_is_named(bucket: Any) -> None:
    bucket.delete_bucket(Bucket=S3["bucket"])
    with pytest.raises(RemoteError, match=r"bucket boot-files in us-east-1 cannot be used: .*NoSuchBucket"):
        await (await resource()).up(inputs(a_ign="one"))


async def test_single_files(bucket: Any) -> None:
    found, _ = configuration.parse({"artifacts": S3})
    store = open_store(found.need_artifacts())
    await store.put("d", {"x.img": b"initrd"})
    assert await store.read("d", "x.img") == b"initrd"
    with pytest.raises(RemoteError, match="NoSuchKey"):
        await store.read("d", "y.img")
