"""What the stream document names for simulated machines is what they take."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from lab.layout import Layout
from lab.machines.base import Address, MachineSpec
from lab.machines.simulated.console import Console
from lab.machines.simulated.disk import Disks
from lab.machines.simulated.fetch import Downloads
from lab.machines.simulated.firmware import Firmware
from lab.machines.simulated.programs.installer import image_os_release
from lab.machines.simulated.surroundings import Surroundings
from lab.network import stream


@pytest.mark.parametrize("architecture", stream.ARCHITECTURES)
def test_the_disk_image_and_the_live_system_are_of_the_same_release(tmp_path: Path, architecture: str) -> None:
    layout = Layout.of(tmp_path)
    layout.make()
    stream.publish(layout, "simulated")
    document = json.loads((layout.boot / "streams/lab.json").read_text())
    formats = document["architectures"][architecture]["artifacts"]["metal"]["formats"]
    [name] = [name for name in formats if name.startswith("raw.")]

    def content(artifact: dict[str, str]) -> bytes:
        data = (layout.boot / urlsplit(artifact["location"]).path.lstrip("/")).read_bytes()
        assert hashlib.sha256(data).hexdigest() == artifact["sha256"]
        return data

    assert image_os_release(content(formats[name]["disk"])).encode() == content(formats["pxe"]["rootfs"])


class _TriesAgain(Exception):
    """The firmware found nothing to boot."""


@pytest.mark.parametrize("architecture", stream.ARCHITECTURES)
def test_firmware_starts_kernels_of_its_own_architecture_alone(tmp_path: Path, architecture: str) -> None:
    layout = Layout.of(tmp_path)
    layout.make()
    stream.publish(layout, "simulated")
    document = json.loads((layout.boot / "streams/lab.json").read_text())
    pxe = document["architectures"]["aarch64"]["artifacts"]["metal"]["formats"]["pxe"]
    kernel, initramfs = (pxe[name]["location"] for name in ("kernel", "initramfs"))
    script = f"#!ipxe\nkernel {kernel} initrd=main ${{buildarch}}\ninitrd --name main {initramfs}\nboot\n"

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/ipxe/"):
            return httpx.Response(200, text=script)
        content = (layout.boot / request.url.path.lstrip("/")).read_bytes()
        return httpx.Response(200, stream=httpx.ByteStream(content), headers={"Content-Length": str(len(content))})

    async def give_up(_: float) -> None:
        raise _TriesAgain

    async def boot() -> tuple[str, ...]:
        address = Address(address="192.0.2.2", prefix=31, gateway="192.0.2.3", public=True)
        spec = MachineSpec(
            id="m", hostname="m", mac="52:54:00:00:00:01", addresses=(address,), memory_mib=1, cpus=1,
            architecture=architecture,
        )  # fmt: skip
        around = Surroundings(ca=layout.ca, boot_server="http://boot", sleep=give_up)
        console = Console(tmp_path / "console.log")
        firmware = Firmware(spec, around, Downloads(), Disks((), tmp_path / "disks"), console)
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            return tuple((await firmware.boot(http, ["network"])).arguments)

    if architecture == "aarch64":
        assert asyncio.run(boot())[-1] == "arm64", "what iPXE calls it"
        return
    with pytest.raises(_TriesAgain):
        asyncio.run(boot())
    assert "Exec format error" in (tmp_path / "console.log").read_text()
