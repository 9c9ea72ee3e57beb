"""Artifacts in an S3 bucket, as moto emulates it within this process."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider.artifact_stores import open_store
from metal_ipi.provider.errors import RemoteError
from tests.provider.harness import Resource, configured, settings_of
from tests.provider.test_artifacts import inputs
from tests.provider.test_configuration import S3, keys


async def resource() -> Resource:
    return await configured("Artifacts", artifacts={**S3, "prefix": "/ignition/"})


async def test_whole_life(bucket: Any) -> None:
    it = await resource()
    first = inputs(a_ign="one", b_ign="two")
    directory = (await it.up(first))["directory"]
    assert keys(bucket) == [f"ignition/{directory}/a.ign", f"ignition/{directory}/b.ign"]
    bucket.delete_object(Bucket=S3["bucket"], Key=f"ignition/{directory}/a.ign")
    await it.refresh()
    assert await it.changes(first) == ['files["a.ign"]']
    await it.up(inputs(a_ign="one"))
    assert keys(bucket) == [f"ignition/{directory}/a.ign"]
    await it.delete()
    await it.delete()
    assert keys(bucket) == []


async def test_a_missing_bucket_is_named(bucket: Any) -> None:
    bucket.delete_bucket(Bucket=S3["bucket"])
    with pytest.raises(RemoteError, match=r"bucket boot-files in us-east-1 cannot be used: .*NoSuchBucket"):
        await (await resource()).up(inputs(a_ign="one"))


async def test_single_files(bucket: Any) -> None:
    store = open_store(settings_of(artifacts=S3).need_artifacts())
    await store.put("d", {"x.img": b"initrd"})
    assert await store.read("d", "x.img") == b"initrd"
    with pytest.raises(RemoteError, match="NoSuchKey"):
        await store.read("d", "y.img")
