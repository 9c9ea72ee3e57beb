"""What the stream document names for simulated machines is what they take."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lab.machines.simulated.programs.installer import image_os_release
from lab.network import stream
from tests.lab.simulated.published import published


@pytest.mark.parametrize("architecture", stream.ARCHITECTURES)
def test_the_disk_image_and_the_live_system_are_of_the_same_release(tmp_path: Path, architecture: str) -> None:
    layout, formats = published(tmp_path, architecture)
    [name] = [name for name in formats if name.startswith("raw.")]

    def content(artifact: dict[str, str]) -> bytes:
        data = (layout.boot / urlsplit(artifact["location"]).path.lstrip("/")).read_bytes()
        assert hashlib.sha256(data).hexdigest() == artifact["sha256"]
        return data

    assert image_os_release(content(formats[name]["disk"])).encode() == content(formats["pxe"]["rootfs"])
