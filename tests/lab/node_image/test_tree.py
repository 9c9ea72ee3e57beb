"""Archives are what tar and the kernel read, with owners and modes that no build directory could have."""

from __future__ import annotations

import io
import stat
import tarfile
from pathlib import Path

import pytest

from lab.node_image.tree import Tree
from tests.lab.node_image.newc import read


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    tree.file("etc/shadow", b"root:*\n", 0o600)
    tree.file("usr/bin/sudo", b"\x7fELF", 0o4755)
    tree.directory("var/home/core", 0o700, uid=1000, gid=1000)
    tree.link("bin", "usr/bin")
    tree.device("dev/console", 5, 1)
    return tree


def test_cpio_holds_modes_owners_links_and_devices(tree: Tree) -> None:
    entries = read(tree.cpio())
    assert entries["etc/shadow"] == (stat.S_IFREG | 0o600, 0, 0, (0, 0), b"root:*\n")
    assert entries["usr/bin/sudo"][0] == stat.S_IFREG | 0o4755
    assert entries["var/home/core"][:3] == (stat.S_IFDIR | 0o700, 1000, 1000)
    assert entries["bin"] == (stat.S_IFLNK | 0o777, 0, 0, (0, 0), b"usr/bin")
    assert entries["dev/console"][0] == stat.S_IFCHR | 0o600
    assert entries["dev/console"][3] == (5, 1)


def test_tar_holds_the_same(tree: Tree) -> None:
    with tarfile.open(fileobj=io.BytesIO(tree.tar())) as archive:
        members = {member.name: member for member in archive}
        shadow = archive.extractfile("etc/shadow")
        assert shadow is not None and shadow.read() == b"root:*\n"
    assert members["usr/bin/sudo"].mode == 0o4755
    assert (members["var/home/core"].uid, members["var/home/core"].gid) == (1000, 1000)
    assert members["bin"].linkname == "usr/bin"
    assert (members["dev/console"].devmajor, members["dev/console"].devminor) == (5, 1)


@pytest.mark.parametrize("archive", [Tree.cpio, Tree.tar])
def test_parents_come_before_children_and_the_same_tree_gives_the_same_bytes(archive: object, tree: Tree) -> None:
    assert callable(archive)
    assert archive(tree) == archive(tree)
    seen: set[str] = set()
    for path, _ in tree.entries():
        parent = path.rpartition("/")[0]
        assert not parent or parent in seen
        seen.add(path)


def test_an_overlay_keeps_links_and_executables(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/plain").write_text("plain")
    (tmp_path / "etc/script").write_text("#!/bin/sh")
    (tmp_path / "etc/script").chmod(0o700)
    (tmp_path / "etc/link").symlink_to("plain")
    tree = Tree()
    tree.overlay(tmp_path)
    assert tree["etc/plain"].mode == stat.S_IFREG | 0o644
    assert tree["etc/script"].mode == stat.S_IFREG | 0o755
    assert tree["etc/link"].data == b"plain"
