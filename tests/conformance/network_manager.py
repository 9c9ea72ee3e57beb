"""Debian's NetworkManager in a machine that QEMU emulates: what it makes of profiles, with a kernel that has bonds.

The machine has an initramfs and nothing else: busybox, NetworkManager, and modules of Debian's cloud kernel.
NetworkManager runs as an initramfs has it, without D-Bus, and ends when all is configured. There is no udev; it does
without where /sys cannot be written to (nm_linux_platform_new in libnm-platform), so /sys is a tmpfs that is read-only,
with the real one's directories in it.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import alone, cache_directory, filling
from lab.node_image import initramfs, packages
from lab.node_image.rootfs import add_libraries
from lab.node_image.tree import Tree

_PACKAGES = ("network-manager", "linux-image-cloud-amd64", "busybox-static")
_MODULES = ("virtio_pci", "virtio_net", "bonding", "8021q")
_APPLETS = ("cat", "grep", "insmod", "ip", "ln", "mkdir", "mount", "poweroff", "sh", "sleep")
_PROFILES = "etc/NetworkManager/system-connections"
_SECONDS = 400
_INIT = """#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/sbin
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 run /run
mkdir -p /run/NetworkManager /var/lib/NetworkManager /real
while read -r module; do
    options=''
    if [ "$module" = bonding ]; then options=max_bonds=0; fi # as systemd and RHCOS have it: no bond0 by itself
    insmod "/usr/lib/modules/$module" $options || echo "cannot load $module"
done </usr/lib/modules/order
mount -t sysfs sysfs /real
mount -t tmpfs sys /sys
for path in /real/*; do mkdir "/sys/${path#/real/}" && mount -o bind "$path" "/sys/${path#/real/}"; done
mount -o remount,ro /sys
@RENAME@
NetworkManager --debug --configure-and-quit=initrd --log-level=INFO
echo "NetworkManager ended with status $?"
cd /real/class/net
bond() { while IFS= read -r line; do echo "SEEN $1 $line"; done <"/real/class/net/bond0/bonding/$1"; }
for what in mode slaves primary; do bond $what; done
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
    for path in ("lib", "lib64", "sbin"):
        tree.link(path, f"usr/{path}")
    for path in ("bin", "dev", "etc/NetworkManager/conf.d", _PROFILES, "proc", "run", "sys", "tmp", "var/lib"):
        tree.directory(path)
    for path in ("usr/lib", "usr/lib64", "usr/sbin"):
        tree.directory(path)
    tree.device("dev/console", 5, 1)
    tree.file("bin/busybox", (debian / "usr/bin/busybox").read_bytes(), 0o755)
    for applet in _APPLETS:
        tree.link(f"bin/{applet}", "busybox")
    tree.file("usr/sbin/NetworkManager", (debian / "usr/sbin/NetworkManager").read_bytes(), 0o755)
    tree.file("etc/NetworkManager/NetworkManager.conf", b"[main]\nplugins=keyfile\nno-auto-default=*\n")
    tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    for name, text in profiles.items():
        tree.file(f"{_PROFILES}/{name}", text.encode(), 0o600)
    initramfs.modules(tree, debian, {"order": _MODULES})
    names = " ".join(f"{mac}={name}" for name, mac in cards.items())
    rename = f"""for pair in {names}; do
    for card in /real/class/net/e*; do
        if [ "$(cat $card/address)" = "${{pair%=*}}" ]; then ip link set "${{card##*/}}" name "${{pair#*=}}"; fi
    done
done"""
    tree.file("init", _INIT.replace("@RENAME@", rename).encode(), 0o755)
    add_libraries(tree, debian)
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
