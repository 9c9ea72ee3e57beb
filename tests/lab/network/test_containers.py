"""Container images are where the nodes' stand-in for the kubelet pulls them from."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from lab.network import files, stream

_PULLER = Path(__file__).parents[3] / "lab" / "openshift" / "node" / "images.go"


@pytest.mark.anyio
async def test_nodes_find_images_at_the_boot_server(tmp_path: Path) -> None:
    match = re.search(r'registry = "(\S+)"', _PULLER.read_text())
    assert match is not None
    image = tmp_path / stream.CONTAINERS / "ghcr.io" / "kube-vip" / "kube-vip:v1"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"program")
    transport = httpx.ASGITransport(files.application(tmp_path))
    async with httpx.AsyncClient(transport=transport) as client:
        answer = await client.get(f"{match[1]}ghcr.io/kube-vip/kube-vip:v1")
    assert (answer.status_code, answer.content) == (200, b"program")
    assert match[1].startswith(f"{stream.BASE_URL}/")
