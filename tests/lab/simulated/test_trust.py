"""Whom a simulated machine trusts: the outside world, and a facility's own authority only when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from lab.machines.simulated import fetch
from lab.machines.simulated.ignition.resource import Fetcher
from tests.serving import tls


class GaveUp(Exception):
    """Ignition would try for ever."""


@asynccontextmanager
async def server(authority: trustme.CA) -> AsyncGenerator[str]:
    """A server of a few bytes on loopback, with a certificate of an authority."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    made = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls(authority))
    try:
        yield f"https://127.0.0.1:{made.sockets[0].getsockname()[1]}/x"
    finally:
        made.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """What the image trusts."""
    path = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    return path


def test_ignition_fetches_from_a_facility_only_with_its_authority(image: Path) -> None:
    """Of what the kernel command line names nobody could tell it beforehand: it must be in what is embedded."""
    facility = trustme.CA()
    told: list[str] = []

    async def give_up(_seconds: float) -> None:
        raise GaveUp

    async def run() -> bytes:
        async with server(facility) as url:
            fetcher = Fetcher("127.0.0.1", image, told.append, give_up)
            try:
                with pytest.raises(GaveUp):
                    await fetcher.get(url)
                pem = facility.cert_pem.bytes().decode()
                await fetcher.trust([{"source": f"data:,{pem.replace('%', '%25').replace('+', '%2B')}"}])
                return await fetcher.get(url)
            finally:
                await fetcher.close()

    assert asyncio.run(run()) == b"{}"
    assert any("CERTIFICATE_VERIFY_FAILED" in line for line in told)


def test_the_root_file_system_comes_from_anybody_for_its_hash_is_checked(image: Path) -> None:
    async def run() -> int:
        async with server(trustme.CA()) as url:
            async with fetch.client("127.0.0.1", fetch.trust_of(image)) as verified:
                with pytest.raises(httpx.ConnectError):
                    await verified.get(url)
            async with fetch.client("127.0.0.1", fetch.no_trust()) as anybody:
                return (await fetch.Downloads().get(anybody, url)).size

    assert asyncio.run(run()) == 2
