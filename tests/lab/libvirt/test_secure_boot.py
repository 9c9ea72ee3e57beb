"""UEFI Secure Boot, in QEMU with real firmware and real signatures: what it refuses, and that the signed way works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lab.machines.libvirt_domain import SECURE_OVMF
from lab.node_image import ensure
from lab.node_image.packages import fetch, run
from tests.lab.namespaces import observed, require_libvirt

pytestmark = [pytest.mark.libvirt, pytest.mark.nightly]
_TOOLS = ("ipxe", "mtools")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the machine of `secure`."""
    require_libvirt(programs=["apt-get"], files=SECURE_OVMF)
    if not ensure().installer:  # out here, where the package registries are
        pytest.skip("there is no cargo here to build coreos-installer with")
    directory = tmp_path_factory.mktemp("secure")
    return observed("tests.lab.libvirt.secure", directory, str(_ipxe(directory)), seconds=3000, libvirt=True)


def _ipxe(directory: Path) -> Path:
    """Debian's iPXE for UEFI as a file system that firmware boots. Nobody signed it."""
    unpacked = directory / "unpacked"
    for package in fetch(_TOOLS, directory / "packages"):
        if package.name.startswith(_TOOLS):
            run("dpkg-deb", "-x", package, unpacked)
    image = directory / "ipxe.img"
    image.write_bytes(b"\0" * (4 << 20))
    tools, quiet = unpacked / "usr/bin", {"MTOOLS_SKIP_CHECK": "1"}
    run(tools / "mformat", "-i", image, "::", **quiet)
    run(tools / "mmd", "-i", image, "::/EFI", "::/EFI/BOOT", **quiet)
    run(tools / "mcopy", "-i", image, unpacked / "usr/lib/ipxe/snponly.efi", "::/EFI/BOOT/BOOTX64.EFI", **quiet)
    return image


def test_firmware_refuses_an_ipxe_that_nobody_signed(seen: dict[str, Any]) -> None:
    assert seen["refused"].startswith("BdsDxe: failed to load Boot000") and "DVD-ROM" in seen["refused"]


def test_the_live_iso_is_started_by_signed_pieces(seen: dict[str, Any]) -> None:
    assert re.search(r'BdsDxe: starting Boot\d+ "UEFI QEMU DVD-ROM', seen["console"])
    assert seen["seen"]["live"].split() == ["BIOS-BOOT", "EFI-SYSTEM", "boot", "root"]


def test_the_installed_system_boots_from_its_disk_and_is_locked_down(seen: dict[str, Any]) -> None:
    assert re.search(r'BdsDxe: starting Boot\d+ "UEFI QEMU QEMU HARDDISK', seen["console"])
    assert seen["seen"]["first"]["generation"] == seen["seen"]["second"]["generation"] == "first"
    assert seen["locked"] == "Kernel is locked down from EFI Secure Boot"


def test_it_is_installed_again_by_kexec_of_a_signed_kernel_only(seen: dict[str, Any]) -> None:
    assert seen["again"]["sent"] == "sent"
    assert seen["again"]["first"]["generation"] == "second"


def test_what_it_takes(seen: dict[str, Any], record_property: Any) -> None:
    refused, installed, again = seen["seconds"]
    text = f"refusal {refused} s, installation and two boots from disk {installed} s, anew by kexec {again} s"
    record_property("told: Secure Boot in QEMU", text)
