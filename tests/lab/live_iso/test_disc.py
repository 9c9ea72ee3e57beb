"""A live ISO is one to those who read such discs: coreos-installer, and the lab's own firmware."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lab.live_iso.coreos import BIOS_BOOT, ISOLINUX, Parts, live_iso
from lab.live_iso.reader import Reader
from lab.live_iso.writer import SECTOR, DiscError, disc
from tests.provider.live_iso.discs import coreos_installer

PARTS = Parts(
    release="12.0.1-0",
    kernel=b"K" * 5000,
    initramfs=b"I" * 70000,
    rootfs=b"R" * 300000,
    efi_boot=b"E" * 900,
    bios_boot={path: path.encode() * 500 for path in BIOS_BOOT},
)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "live.iso"
    path.write_bytes(live_iso(PARTS))
    return path


def _ask(*arguments: object) -> bytes:
    program = coreos_installer()
    if program is None:
        pytest.skip("coreos-installer is not here; make setup builds it where there is cargo")
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True).stdout


@pytest.mark.parametrize("uefi", [True, False])
def test_firmware_and_boot_loader_find_their_files(whole: Path, uefi: bool) -> None:
    reader = Reader(whole)
    booted = reader.booted(uefi=uefi)
    assert reader.efi_boot() == PARTS.efi_boot
    assert booted.kernel == PARTS.kernel
    assert booted.initrds == (PARTS.initramfs, bytes(256 * 1024))
    assert booted.arguments[:3] == (
        "BOOT_IMAGE=/images/pxeboot/vmlinuz",
        "coreos.liveiso=lab-coreos-12.0.1-0",
        "ignition.firstboot",
    )
    assert reader.read("images/pxeboot/rootfs.img") == PARTS.rootfs


def test_what_is_not_there_is_an_error(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(DiscError, match=r"images/none\.img is not on the disc"):
        Reader(whole).read("images/none.img")
    other = tmp_path / "ipxe.img"
    other.write_bytes(b"\0" * 65536)
    with pytest.raises(DiscError, match=r"ipxe\.img is not an ISO 9660 image"):
        Reader(other)


def test_a_folder_of_more_than_a_sector(tmp_path: Path) -> None:
    files = {f"many/file{number:03}.txt": f"{number}".encode() for number in range(200)}
    path = tmp_path / "many.iso"
    path.write_bytes(disc(files, label="many").data)
    reader = Reader(path)
    assert [reader.read(name) for name in files] == list(files.values())


@pytest.mark.parametrize("name", ["a-name-that-is-long.txt", "a-long-folder/x"])
def test_a_name_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(DiscError, match="names on a disc have 8 characters"):
        disc({name: b""}, label="x")


def test_coreos_installer_reads_its_kernel_arguments(whole: Path) -> None:
    told = _ask("iso", "kargs", "show", whole).decode().split()
    assert told == ["coreos.liveiso=lab-coreos-12.0.1-0", "ignition.firstboot", "ignition.platform.id=metal"]
    _ask("iso", "kargs", "modify", "--append", "console=ttyS0", whole)
    for uefi in (True, False):
        assert Reader(whole).booted(uefi=uefi).arguments[-1] == "console=ttyS0"


def test_isolinux_is_told_where_it_is(whole: Path) -> None:
    on_disc = Reader(whole).read(ISOLINUX)
    primary, sector, length, checksum = struct.unpack_from("<4I", on_disc, 8)
    data, rest = whole.read_bytes(), on_disc[64:]
    assert (primary, length) == (16, len(on_disc))
    assert data[sector * SECTOR :].startswith(on_disc)
    assert checksum == sum(struct.unpack(f"<{len(rest) // 4}I", rest)) % 2**32
    assert on_disc[:8] + on_disc[64:] == PARTS.bios_boot[ISOLINUX][:8] + PARTS.bios_boot[ISOLINUX][64:]


def test_without_isolinux_only_uefi_finds_something(tmp_path: Path) -> None:
    path = tmp_path / "arm64.iso"
    path.write_bytes(live_iso(replace(PARTS, bios_boot={})))
    assert Reader(path).booted().kernel == PARTS.kernel
    with pytest.raises(DiscError, match=r"isolinux/isolinux\.bin is not on the disc"):
        Reader(path).booted(uefi=False)


def test_coreos_installer_makes_the_small_disc(whole: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.iso"
    _ask("iso", "extract", "minimal-iso", "--output-rootfs", tmp_path / "rootfs", whole, small)
    assert (tmp_path / "rootfs").read_bytes() == PARTS.rootfs
    assert Reader(small).booted().kernel == PARTS.kernel
    with pytest.raises(DiscError):
        Reader(small).read("images/pxeboot/rootfs.img")


def test_coreos_installer_lists_the_files(whole: Path) -> None:
    told = json.loads(_ask("dev", "show", "iso", whole))
    assert told["header"]["descriptors"][0]["volume_id"] == "lab-coreos-12.0.1-0"
    assert [descriptor["type"] for descriptor in told["header"]["descriptors"]] == ["primary", "boot"]
    assert {"IMAGES/PXEBOOT/VMLINUZ", "IMAGES/EFIBOOT.IMG", "COREOS/MINISO.DAT"} <= set(told["records"])


def test_the_same_parts_make_the_same_disc() -> None:
    one, two = live_iso(PARTS), live_iso(PARTS)
    assert hashlib.sha256(one).digest() == hashlib.sha256(two).digest()
    assert len(one) % SECTOR == 0
