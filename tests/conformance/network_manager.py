"""NetworkManager as machines of the lab have it, in one that QEMU emulates: what it makes of profiles.

The machine has an initramfs and nothing else: busybox, Debian's NetworkManager, modules of its cloud kernel. The host's
kernel may know neither bonds nor VLANs.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import alone, cache_directory, filling
from lab.node_image import contents, initramfs, packages
from lab.node_image import network_manager as node_image
from lab.node_image.tree import Tree

_PACKAGES = ("network-manager", "linux-image-cloud-amd64", "busybox-static")
_APPLETS = (*contents.INITRAMFS_APPLETS, "poweroff")
_PROFILES = "profiles"
_SECONDS = 400
_INIT = """#!/bin/busybox sh
export PATH=/bin
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=0755 run /run
while read -r module; do insmod "/lib/modules/$module"; done </lib/modules/order
for pair in @CARDS@; do
    for card in /sys/class/net/e*; do
        if [ "$(cat "$card/address")" = "${pair%=*}" ]; then ip link set "${card##*/}" name "${pair#*=}"; fi
    done
done
network_manager /profiles || echo "NetworkManager failed"
cat /run/network-manager.log
for what in mode slaves primary; do echo "SEEN $what $(cat /sys/class/net/bond0/bonding/$what)"; done
grep VID: /proc/net/vlan/* | while read -r _ _ number _; do echo "SEEN vlan $number"; done
grep Device: /proc/net/vlan/* | while read -r _ parent; do echo "SEEN parent $parent"; done
ip -o -4 addr | while read -r _ name _ address _; do echo "SEEN address ${name%%@*} $address"; done
ip -4 route | while IFS= read -r line; do echo "SEEN route $line"; done
echo "SEEN end"
poweroff -f
"""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the kernel of the machine told in the end."""

    bond_mode: str
    bond_ports: tuple[str, ...]
    primary: str
    vlan: str
    """Number, and what it is on."""
    addresses: tuple[str, ...]
    """Interface and address."""
    routes: tuple[str, ...]
    log: str
    """The console."""


def missing() -> str | None:
    """Why there can be no such machine here."""
    absent = [name for name in ("qemu-system-x86_64", "apt-get", "dpkg-deb") if shutil.which(name) is None]
    return f"{', '.join(absent)}: not here" if absent else None


def run(folder: Path, profiles: Mapping[str, str], cards: Mapping[str, str]) -> Seen:
    """Boot a machine with these cards (MAC addresses by the names that they get) and profiles, and see what it has."""
    debian = _debian()
    (kernel,) = (debian / "boot").glob("vmlinuz-*")
    image = folder / "initramfs"
    image.write_bytes(gzip.compress(_tree(debian, profiles, cards).cpio(), 1))
    command = ["qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "768"]
    command += ["-cpu", "qemu64,+rdrand", "-kernel", str(kernel), "-initrd", str(image)]
    command += ["-append", "console=ttyS0 quiet mitigations=off no_timer_check random.trust_cpu=on"]
    for number, mac in enumerate(cards.values()):
        command += ["-netdev", f"hubport,hubid=0,id=n{number}"]
        command += ["-device", f"virtio-net-pci,netdev=n{number},mac={mac},romfile="]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=_SECONDS,
    )
    return _seen(done.stdout + done.stderr)


def _debian() -> Path:
    """The unpacked packages, from the user's cache."""
    directory = cache_directory() / "network-manager" / "debian"
    with alone(directory.parent / "lock", "NetworkManager", print):
        if not directory.is_dir():
            with filling(directory) as fresh:
                packages.unpack(packages.fetch(_PACKAGES, fresh / "packages"), fresh)
                shutil.rmtree(fresh / "packages")
    return directory


def _tree(debian: Path, profiles: Mapping[str, str], cards: Mapping[str, str]) -> Tree:
    tree = Tree()
    initramfs.skeleton(tree, debian, _APPLETS)
    orders = {"order": ("virtio_pci", "virtio_net"), "networks": contents.NETWORK_MODULES}
    initramfs.modules(tree, debian, orders)
    node_image.add(tree, debian)
    for name, text in profiles.items():
        tree.file(f"{_PROFILES}/{name}", text.encode(), 0o600)
    pairs = " ".join(f"{mac}={name}" for name, mac in cards.items())
    tree.file("init", _INIT.replace("@CARDS@", pairs).encode(), 0o755)
    return tree


def _seen(console: str) -> Seen:
    told = [line.strip().removeprefix("SEEN ").partition(" ") for line in console.splitlines() if "SEEN " in line]
    found: dict[str, list[str]] = {}
    for what, _, text in told:
        found.setdefault(what, []).append(text)
    assert "end" in found, f"the machine did not come to its end:\n{console[-4000:]}"
    return Seen(
        bond_mode=" ".join(found.get("mode", [])).partition(" ")[0],
        bond_ports=tuple(" ".join(found.get("slaves", [])).split()),
        primary=" ".join(found.get("primary", [])),
        vlan=" ".join([*found.get("vlan", []), *found.get("parent", [])]),
        addresses=tuple(found.get("address", [])),
        routes=tuple(route.strip() for route in found.get("route", [])),
        log=console,
    )
