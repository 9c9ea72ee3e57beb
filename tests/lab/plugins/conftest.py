"""What all tests of the stand-ins' resources begin with, an emulated API and polls that take no time, and end with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from lab.plugins.equinix_metal import client, device, special
from tests.lab.plugins.emulated import Emulation, emulation
from tests.lab.plugins.harness import opened


@pytest.fixture
async def closed(anyio_backend: str) -> AsyncGenerator[None]:
    """Leaves nothing open that a test has opened."""
    yield
    while opened:
        await opened.pop().close()


@pytest.fixture
def metal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Emulation, None, None]:
    """An emulated API of the test's own, which plug-ins in this process talk to."""
    for module, name in (
        (client, "FIRST_WAIT_SECONDS"),
        (device, "AGAIN_SECONDS"),
        (device, "FEW_EVERY_SECONDS"),
        (device, "MANY_EVERY_SECONDS"),
        (special, "AGAIN_SECONDS"),
        (special, "FIRST_POLL_SECONDS"),
        (special, "LONGEST_POLL_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.02)
    monkeypatch.delenv("METAL_AUTH_TOKEN", raising=False)
    with emulation(tmp_path / "metal") as found:
        monkeypatch.setenv("METAL_API_URL", found.url)
        yield found
