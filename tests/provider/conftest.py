"""What tests of the provider share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider import backoff
from tests.provider import fake_bmc, fake_cluster, fake_metal, ssh_servers
from tests.provider.fake_bmc import FakeBmc
from tests.provider.fake_cluster import FakeCluster
from tests.provider.fake_metal import FakeMetal
from tests.provider.installation_site import Site, installation_site
from tests.provider.no_waiting import NoWaiting, WatchedLoop
from tests.provider.test_configuration import S3


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """For `no_waiting`."""
    return "asyncio", {"loop_factory": WatchedLoop}


@pytest.fixture
async def cluster(anyio_backend: Any) -> AsyncGenerator[FakeCluster]:
    """The API of a cluster."""
    async with fake_cluster.running() as server:
        yield server


@pytest.fixture
async def artifact_host(tmp_path: Path, anyio_backend: Any) -> AsyncGenerator[dict[str, Any]]:
    """The provider's `artifacts` section for an SFTP server which serves the test's folder."""
    async with ssh_servers.artifact_host(tmp_path, ssh_servers.key(), ssh_servers.key()) as section:
        yield section


@pytest.fixture
def bucket() -> Iterator[Any]:
    """A client of S3, as moto emulates it within this process, with the bucket of `S3`; see `keys`."""
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: artifacts in S3 are not tested")
    moto = pytest.importorskip("moto", reason="moto is not installed: artifacts in S3 are not tested")
    with moto.mock_aws():
        client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
        client.create_bucket(Bucket=S3["bucket"])
        yield client
        client.close()


@pytest.fixture
def metal() -> Iterator[FakeMetal]:
    """The API of Equinix Metal."""
    with fake_metal.running() as server:
        yield server


@pytest.fixture
async def site(tmp_path: Path, cluster: FakeCluster, no_waiting: None, anyio_backend: Any) -> AsyncGenerator[Site]:
    """Machines that are installed, with all that their installation needs."""
    async with installation_site(tmp_path, cluster) as made:
        yield made


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the provider's pauses pass at once."""
    monkeypatch.setattr(backoff, "clock", NoWaiting())


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    """A server that is switched off, and its BMC."""
    with fake_bmc.running() as server:
        yield server
