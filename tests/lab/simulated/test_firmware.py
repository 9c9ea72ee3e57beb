"""What a simulated machine's firmware boots, and what Secure Boot refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from lab.live_iso.coreos import BIOS_BOOT, Parts, live_iso
from lab.machines import base
from lab.machines.simulated.console import Console
from lab.machines.simulated.disk import Disks
from lab.machines.simulated.fetch import Downloads
from lab.machines.simulated.firmware import Firmware
from lab.machines.simulated.kernel import BootError, Kernel
from lab.machines.simulated.surroundings import Surroundings
from lab.network import stream
from metal_ipi.provider.live_iso import embed, initrd
from metal_ipi.provider.live_iso.iso9660 import Disc
from tests.lab.simulated.published import published

SPEC = base.MachineSpec(
    id="6ac2a3d0-0000-4000-8000-000000000001",
    hostname="server-0",
    mac="52:54:00:aa:bb:cc",
    addresses=(base.Address(address="192.0.2.3", prefix=24, gateway="192.0.2.1", public=True),),
    memory_mib=64,
    cpus=1,
    firmware="uefi",
)
SIGNED = json.dumps({"signed": True}).encode()


class _Enough(Exception):
    """The firmware begins again."""


async def _no_more(_: float) -> None:
    raise _Enough


def _disc(path: Path, *, efi: bytes = SIGNED, kernel: bytes = b"kernel", bios: bool = True) -> str:
    isolinux = {name: b"S" * 128 for name in BIOS_BOOT if bios}
    parts = Parts(release="1", kernel=kernel, initramfs=b"early", rootfs=b"r", efi_boot=efi, bios_boot=isolinux)
    path.write_bytes(live_iso(parts))
    return str(path)


def _nothing(_: httpx.Request) -> httpx.Response:
    """Whatever is asked of the network is not there."""
    return httpx.Response(404)


def _boot(
    spec: base.MachineSpec,
    order: Sequence[base.BootDevice],
    directory: Path,
    network: Callable[[httpx.Request], httpx.Response] = _nothing,
) -> tuple[Kernel | None, str]:
    """What was started, and the console."""
    console = Console(directory / "console.log")
    around = Surroundings(
        ca=directory / "ca.pem", boot_server="http://192.0.2.12", lab_openshift=directory / "none", sleep=_no_more
    )
    disks = Disks(spec.disks, directory)
    firmware = Firmware(spec, around, Downloads(), disks, console)

    async def run() -> Kernel | None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(network)) as http:
            try:
                return await firmware.boot(http, order)
            except _Enough:
                return None

    return asyncio.run(run()), console.printed().decode()


@pytest.mark.parametrize("secure", [True, False])
def test_a_live_iso_is_booted(tmp_path: Path, secure: bool) -> None:
    spec = replace(SPEC, secure_boot=secure, medium=_disc(tmp_path / "live.iso"))
    kernel, console = _boot(spec, ("cd", "disk"), tmp_path)
    assert kernel is not None and kernel.initrds[0] == b"early"
    assert "coreos.liveiso=lab-coreos-1" in kernel.arguments
    assert ("EFI stub: UEFI Secure Boot is enabled." in console) is secure


def test_a_bios_boots_what_has_isolinux(tmp_path: Path) -> None:
    spec = replace(SPEC, firmware="bios", medium=_disc(tmp_path / "live.iso"))
    kernel, console = _boot(spec, ("cd", "disk"), tmp_path)
    assert kernel is not None and "coreos.liveiso=lab-coreos-1" in kernel.arguments and "ISOLINUX" in console
    spec = replace(spec, medium=_disc(tmp_path / "uefi-only.iso", bios=False))
    kernel, console = _boot(spec, ("cd", "disk"), tmp_path)
    assert kernel is None and "Boot failed: isolinux/isolinux.bin is not on the disc" in console


@pytest.mark.parametrize("efi", [b"FAT", b"[]", b'{"signed": false}'])
def test_secure_boot_refuses_a_disc_that_nobody_signed(tmp_path: Path, efi: bytes) -> None:
    spec = replace(SPEC, secure_boot=True, medium=_disc(tmp_path / "live.iso", efi=efi))
    kernel, console = _boot(spec, ("cd",), tmp_path)
    assert kernel is None
    assert 'failed to load Boot0001 "UEFI QEMU DVD-ROM": Access Denied' in console


def test_secure_boot_refuses_ipxe_before_it_asks_for_anything(tmp_path: Path) -> None:
    kernel, console = _boot(replace(SPEC, secure_boot=True), ("network",), tmp_path)
    assert kernel is None
    assert "Access Denied" in console and "iPXE" not in console
    _, console = _boot(SPEC, ("network",), tmp_path)
    assert "iPXE initialising devices" in console


def test_what_a_server_is_told_is_in_an_initramfs_of_its_own(tmp_path: Path) -> None:
    medium = _disc(tmp_path / "live.iso")
    with Path(medium).open("r+b") as file:
        (*_, own) = embed.patches(Disc(file), (), {"config.ign": b"{}"})
        file.seek(own.offset)
        file.write(own.data)
    kernel, _ = _boot(replace(SPEC, medium=medium), ("cd",), tmp_path)
    assert kernel is not None and kernel.initrds[0] == b"early"
    assert initrd.unpack(kernel.initrds[1]) == {"config.ign": b"{}"} and kernel.initrds[1].startswith(b"070701")
    with Path(medium).open("r+b") as file:
        file.seek(own.offset + 20)
        file.write(bytes(100))
    with pytest.raises(BootError, match="XZ-compressed data is corrupt"):
        _boot(replace(SPEC, medium=medium), ("cd",), tmp_path)


def test_a_disc_for_another_architecture_starts_nothing(tmp_path: Path) -> None:
    kernel = json.dumps({"architecture": "aarch64"}).encode()
    booted, console = _boot(replace(SPEC, medium=_disc(tmp_path / "live.iso", kernel=kernel)), ("cd",), tmp_path)
    assert booted is None and "error: the kernel is not x86_64" in console


@pytest.mark.parametrize("architecture", stream.ARCHITECTURES)
def test_firmware_starts_kernels_of_its_own_architecture_alone(tmp_path: Path, architecture: str) -> None:
    layout, formats = published(tmp_path, "aarch64")
    location = {name: formats["pxe"][name]["location"] for name in ("kernel", "initramfs")}
    script = "#!ipxe\nkernel {kernel} initrd=main ${{buildarch}}\ninitrd --name main {initramfs}\nboot\n"

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/ipxe/"):
            return httpx.Response(200, text=script.format_map(location))
        content = (layout.boot / request.url.path.lstrip("/")).read_bytes()
        return httpx.Response(200, stream=httpx.ByteStream(content), headers={"Content-Length": str(len(content))})

    kernel, console = _boot(replace(SPEC, architecture=architecture), ("network",), tmp_path, answer)
    if architecture == "aarch64":
        assert kernel is not None and kernel.arguments[-1] == "arm64", "what iPXE calls it"
    else:
        assert kernel is None and "Exec format error" in console


def test_a_drive_without_a_disc_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "ipxe.img").write_bytes(b"iPXE" * 10000)
    for medium in ("", str(tmp_path), str(tmp_path / "gone.iso"), str(tmp_path / "ipxe.img")):
        booted, console = _boot(replace(SPEC, medium=medium), ("cd",), tmp_path)
        assert booted is None and "Boot failed: " in console
