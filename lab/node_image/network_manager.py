"""NetworkManager in an initramfs: for machines whose networks are more than one address on one card."""

from __future__ import annotations

import lzma
from pathlib import Path

from lab.node_image.rootfs import add_libraries
from lab.node_image.tree import Tree

_PROGRAM = "usr/sbin/NetworkManager"


def add(tree: Tree, debian: Path) -> None:
    """Add it and its libraries, packed: most machines leave it so. `files/initramfs/network_manager` unpacks it."""
    own = Tree()
    own.file("bin/NetworkManager", (debian / _PROGRAM).read_bytes(), 0o755)
    add_libraries(own, debian)
    tree.file("usr/lib/network-manager.tar.xz", lzma.compress(own.tar(), check=lzma.CHECK_CRC32, preset=2))
