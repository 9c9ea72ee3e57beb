"""Libraries follow the programs, modules their dependencies, and the scripts of the image are sound."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.errors import ImageError
from lab.node_image import contents, elf, initramfs, rootfs
from lab.node_image.tree import Tree

FILES = Path(rootfs.__file__).parent / "files"


def test_needed_finds_the_libraries_and_the_loader_of_a_real_program() -> None:
    names = elf.needed(Path("/bin/sh").resolve().read_bytes())
    assert "libc.so.6" in names
    assert any(name.startswith("/lib") and "ld-linux" in name for name in names)


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(64)])
def test_what_is_no_64_bit_elf_file_needs_nothing(data: bytes) -> None:
    assert elf.needed(data) == ()


def test_a_library_that_no_package_has_is_named(tmp_path: Path) -> None:
    tree = Tree()
    tree.file("usr/bin/sh", Path("/bin/sh").resolve().read_bytes())
    with pytest.raises(ImageError, match=r"shared library (libc|ld-linux)"):
        rootfs.add_libraries(tree, tmp_path)


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """Packages of which every program is a script, and modules that depend on each other."""
    for name in (*contents.PROGRAMS, contents.IGNITION, "usr/sbin/NetworkManager"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    texts = [f"usr/lib/systemd/system/{unit}" for unit in contents.UNITS]
    for name in (*texts, *(f"usr/lib/udev/rules.d/{rules}" for rules in contents.UDEV_RULES)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[Unit]\n")
    depends = {"virtio_net": "net_failover,virtio", "net_failover": "failover", "virtio_pci": "virtio"}
    depends |= {"nft_reject_inet": "nf_tables", "virtio_blk": "virtio", "virtio_scsi": "scsi_mod,virtio"}
    depends |= {"sd_mod": "scsi_mod", "bridge": "llc,stp", "stp": "llc", "8021q": "mrp,garp", "bonding": "tls"}
    for name in ("virtio", "failover", "nf_tables", "scsi_mod", "llc", "mrp", "garp", "tls", *depends):
        path = tmp_path / "usr/lib/modules/6.1/kernel" / f"{name.replace('_', '-')}.ko"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"\0license=GPL\0depends={depends.get(name, '')}\0".encode())
    return tmp_path


def test_modules_are_loaded_after_what_they_depend_on(debian: Path) -> None:
    tree = initramfs.build(debian, "12.0.1-0", "0" * 128)
    order = tree["usr/lib/modules/order"].data.decode().split()
    network = ["virtio", "virtio_pci", "failover", "net_failover", "virtio_net"]
    assert order == [*network, "nf_tables", "nft_reject_inet", "llc", "stp", "bridge"]
    disk = tree["usr/lib/modules/disk"].data.decode().split()
    assert disk == ["virtio_blk", "scsi_mod", "virtio_scsi", "sd_mod"]
    networks = tree["usr/lib/modules/networks"].data.decode().split()
    assert networks == ["tls", "bonding", "mrp", "garp", "8021q"]
    assert all(f"usr/lib/modules/{name}" in tree for name in (*order, *disk, *networks))


def test_the_initramfs_holds_the_hash_of_the_root_file_system(debian: Path) -> None:
    assert initramfs.build(debian, "12.0.1-0", "0" * 128)["etc/rootfs.sha512"].data == b"0" * 128 + b"\n"


def test_the_root_file_system_says_its_release_and_hides_its_secrets(debian: Path) -> None:
    tree = rootfs.build(debian, "12.0.1-0", openshift=Path(__file__), afterburn=None, installer=None)
    assert b"OSTREE_VERSION='12.0.1-0'\n" in tree["etc/os-release"].data
    assert tree["etc/shadow"].mode & 0o777 == 0o400
    assert tree["usr/bin/sudo"].mode & 0o7777 == 0o4755
    assert "usr/bin/afterburn" not in tree
    assert "usr/bin/coreos-installer" not in tree


def test_a_program_that_every_release_has_is_missed(debian: Path) -> None:
    (debian / "usr/bin/lsblk").unlink()
    with pytest.raises(ImageError, match="program usr/bin/lsblk: none of the packages"):
        rootfs.build(debian, "12.0.1-0", openshift=Path(__file__), afterburn=None, installer=None)


@pytest.mark.parametrize("script", ["init", "dhcp", "in_sysroot", "network_manager"])
def test_scripts_of_the_initramfs_parse(script: str) -> None:
    subprocess.run(["sh", "-n", FILES / "initramfs" / script], check=True)
