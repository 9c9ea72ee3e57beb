"""What a lab serves is described truly, trusts the lab's CA, and cannot damage the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lab.errors import ImageError
from lab.live_iso.coreos import BIOS_BOOT
from lab.live_iso.reader import Reader
from lab.node_image import disk
from lab.node_image.efi import EFI_BOOT
from lab.node_image.image import NodeImage
from lab.node_image.tree import Tree
from tests.lab.node_image.newc import read

BASE = "http://boot.facility.test"
CONFIG = '{"ignition": {"version": "3.2.0"}}'


@pytest.fixture
def image(tmp_path: Path) -> NodeImage:
    directory = tmp_path / "cache"
    directory.mkdir()
    tree = Tree()
    tree.file("init", b"#!/bin/busybox sh\n", 0o755)
    contents = {"kernel": b"bzImage", "initramfs": tree.cpio(), "rootfs": b"tar"}
    for name, data in contents.items():
        (directory / name).write_bytes(data)
    for half in (disk.HEAD, disk.TAIL):
        (directory / half).write_bytes(half.encode())
    (directory / EFI_BOOT).write_bytes(b"FAT")
    for path in BIOS_BOOT:
        (directory / Path(path).name).write_bytes(b"S" * 128)
    image = NodeImage(directory=directory, release="12.0.1-0", afterburn=False, installer=True)
    image.save()
    return image


def test_the_description_survives_the_cache(image: NodeImage) -> None:
    assert NodeImage.load(image.directory) == image


def test_the_stream_names_what_is_served_with_its_hash(image: NodeImage, tmp_path: Path) -> None:
    document = image.publish(tmp_path / "boot", b"PEM", f"{BASE}/", CONFIG)
    metal = document["architectures"]["x86_64"]["artifacts"]["metal"]
    assert metal["release"] == "12.0.1-0"
    assert set(metal["formats"]["pxe"]) == {"kernel", "initramfs", "rootfs"}
    assert set(metal["formats"]["raw.zst"]) == {"disk"}
    assert set(metal["formats"]["iso"]) == {"disk"}
    others = (metal["formats"]["raw.zst"]["disk"], metal["formats"]["iso"]["disk"])
    for artifact in (*metal["formats"]["pxe"].values(), *others):
        served = tmp_path / "boot" / artifact["location"].removeprefix(f"{BASE}/")
        assert hashlib.sha256(served.read_bytes()).hexdigest() == artifact["sha256"]


def test_the_served_initramfs_has_the_lab_s_ca_and_all_else(image: NodeImage, tmp_path: Path) -> None:
    image.publish(tmp_path / "boot", b"PEM", BASE, CONFIG)
    (served,) = (tmp_path / "boot").rglob("*initramfs*")
    entries = read(served.read_bytes())
    assert entries["etc/lab-ca.pem"][4] == b"PEM"
    assert entries["usr/lib/ignition/base.d/50-lab.ign"][4] == CONFIG.encode()
    assert entries["init"][4] == b"#!/bin/busybox sh\n"


def test_the_served_disc_boots_the_same_system(image: NodeImage, tmp_path: Path) -> None:
    image.publish(tmp_path / "boot", b"PEM", BASE, CONFIG)
    (served,) = (tmp_path / "boot").rglob("*.iso")
    reader = Reader(served)
    booted = reader.booted()
    assert (booted.kernel, reader.efi_boot()) == (b"bzImage", b"FAT")
    assert reader.booted(uefi=False) == booted
    assert read(booted.initrds[0])["etc/lab-ca.pem"][4] == b"PEM"
    assert "coreos.liveiso=lab-coreos-12.0.1-0" in booted.arguments
    assert reader.read("images/pxeboot/rootfs.img") == b"tar"


def test_damage_to_a_served_file_does_not_reach_the_cache(image: NodeImage, tmp_path: Path) -> None:
    image.publish(tmp_path / "boot", b"PEM", BASE, CONFIG)
    (served,) = (tmp_path / "boot").rglob("*rootfs*")
    with served.open("r+b") as file:
        file.write(b"!!!")
    assert (image.directory / "rootfs").read_bytes() == b"tar"
    image.publish(tmp_path / "boot", b"PEM", BASE, CONFIG)
    assert served.read_bytes() == b"tar"


def test_the_served_disk_has_the_lab_s_ca_between_its_halves(image: NodeImage, tmp_path: Path) -> None:
    image.publish(tmp_path / "boot", b"PEM", BASE, CONFIG)
    (served,) = (tmp_path / "boot").rglob("*.raw.zst")
    frame = served.read_bytes().removeprefix(disk.HEAD.encode()).removesuffix(disk.TAIL.encode())
    # A zstd frame: magic number, descriptor (one segment, its size in 4 bytes), size, and one raw last block.
    assert frame[:5] == b"\x28\xb5\x2f\xfd\xa0"
    content = frame[12:]
    assert int.from_bytes(frame[5:9], "little") == len(content)
    assert int.from_bytes(frame[9:12], "little") == len(content) << 3 | 1
    assert read(content)["etc/lab-ca.pem"][4] == b"PEM"


def test_a_ca_that_has_no_room_on_the_disk_is_refused(image: NodeImage, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"the lab's CA and config make 2\d\d\d\d bytes, there is room for 16384"):
        image.publish(tmp_path / "boot", b"P" * 20000, BASE, CONFIG)
