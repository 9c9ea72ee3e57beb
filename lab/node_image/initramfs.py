"""The initramfs: busybox, virtio network drivers, the real Ignition, and the hash of the root file system."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from lab.errors import ImageError
from lab.node_image import contents, network_manager
from lab.node_image.rootfs import add_libraries
from lab.node_image.tree import Tree

_FILES = Path(__file__).parent / "files" / "initramfs"
_BASE_CONFIG = "usr/lib/ignition/base.d/50-lab.ign"
"""Where Ignition looks for what the image itself adds to a machine's config."""
_SHADOW_TOOLS = ("groupadd", "useradd", "usermod")


def build(debian: Path, release: str, rootfs_sha512: str) -> Tree:
    """The tree of the initramfs; /etc/lab-ca.pem is missing from it, every lab has its own."""
    tree = Tree()
    skeleton(tree, debian, contents.INITRAMFS_APPLETS)
    tree.file("bin/ignition", (debian / contents.IGNITION).read_bytes(), 0o755)
    for tool in (*_SHADOW_TOOLS, "systemctl"):
        tree.link(f"bin/{tool}", "in_sysroot")
    # Debian's Ignition always labels what it wrote for SELinux, which this node does not have.
    tree.file("bin/setfiles", b"#!/bin/sh\n", 0o755)
    for name, place in (("init", "init"), ("dhcp", "bin/dhcp"), ("in_sysroot", "bin/in_sysroot")):
        tree.file(place, (_FILES / name).read_bytes(), 0o755)
    # Stream metadata says sha256; for the machine itself sha512 is just as good and twice as fast under emulation.
    tree.file("etc/rootfs.sha512", f"{rootfs_sha512}\n".encode())
    tree.link("etc/resolv.conf", "/run/resolv.conf")
    tree.file("etc/release", f"{release}\n".encode())
    orders = {"order": contents.MODULES, "disk": contents.DISK_MODULES, "networks": contents.NETWORK_MODULES}
    modules(tree, debian, orders)
    add_libraries(tree, debian)
    network_manager.add(tree, debian)
    return tree


def skeleton(tree: Tree, debian: Path, applets: Sequence[str]) -> None:
    """Add what every initramfs begins with: directories, busybox, and what starts NetworkManager."""
    for path in ("lib", "lib64", "sbin"):
        tree.link(path, f"usr/{path}")
    for path in ("bin", "dev", "proc", "run", "sys", "tmp", "usr/lib", "usr/lib64"):
        tree.directory(path)
    tree.link("usr/bin", "../bin")
    tree.link("usr/sbin", "../bin")
    tree.device("dev/console", 5, 1)
    tree.file("bin/busybox", (debian / "usr/bin/busybox").read_bytes(), 0o755)
    for applet in applets:
        tree.link(f"bin/{applet}", "busybox")
    tree.file("bin/network_manager", (_FILES / "network_manager").read_bytes(), 0o755)


def with_authority(initramfs: bytes, authority_pem: bytes, base_config: str) -> bytes:
    """The initramfs as one lab serves it: the kernel unpacks archives that follow each other into one tree."""
    return initramfs + b"\0" * (-len(initramfs) % 4) + authority(authority_pem, base_config)


def authority(authority_pem: bytes, base_config: str) -> bytes:
    """The archive that one lab adds to the initramfs: its CA, and what the image adds to machines' configurations."""
    tree = Tree()
    tree.file("etc/lab-ca.pem", authority_pem)
    directory = PurePosixPath(_BASE_CONFIG).parent
    for path in (*reversed(directory.parents[:-1]), directory):
        tree.directory(str(path))
    tree.file(_BASE_CONFIG, base_config.encode())
    return tree.cpio()


def modules(tree: Tree, debian: Path, orders: Mapping[str, Sequence[str]]) -> None:
    """Add modules with what they depend on, and lists of them in the order in which to load them.

    Here it is `order` for every machine, then `disk` for those with disks, `networks` for those with bonds or VLANs.
    """
    (root,) = (debian / "usr/lib/modules").iterdir()
    available = {path.stem.replace("-", "_"): path for path in root.rglob("*.ko")}
    loaded: list[str] = []

    def add(name: str) -> None:
        if name in loaded:
            return
        if name not in available:
            raise ImageError(f"kernel module {name}: {root.name} does not have it")
        data = available[name].read_bytes()
        # modinfo's field in the module's own .modinfo section: NUL-terminated key=value strings.
        match = re.search(rb"\0depends=([^\0]*)\0", data)
        for dependency in filter(None, (match.group(1).decode() if match else "").split(",")):
            add(dependency)
        loaded.append(name)
        tree.file(f"usr/lib/modules/{name}", data)

    for order, wanted in orders.items():
        before = len(loaded)
        for module in wanted:
            add(module)
        tree.file(f"usr/lib/modules/{order}", "".join(f"{name}\n" for name in loaded[before:]).encode())
