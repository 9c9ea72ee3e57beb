"""What tests of the provider share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.provider import fake_cluster
from tests.provider.fake_cluster import FakeCluster
from tests.provider.installation_world import Run, World, world


@pytest.fixture(scope="session")
def world_cluster() -> Iterator[FakeCluster]:
    """The cluster of the worlds."""
    with fake_cluster.running() as server:
        yield server


@pytest.fixture
def sockets_collected() -> Iterator[None]:
    """For `kills`."""
    yield
    gc.collect()


@pytest.fixture
def run(tmp_path: Path, world_cluster: FakeCluster) -> Run:
    """Runs a test in a world of machines."""

    def runner(test: Callable[[World], Awaitable[None]]) -> None:
        async def inside() -> None:
            async with world(tmp_path, world_cluster) as it:
                await test(it)

        asyncio.run(asyncio.wait_for(inside(), 60))

    return runner
