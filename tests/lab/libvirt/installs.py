"""Machines that are installed to their disks by coreos-installer, in the namespaces this process was started in.

PXE, live system, installation, reboot from disk, and once more from disk. With `--again` the first one has its live
system from a disc, and is then installed again, by kexec from the system that runs. Live systems have their Ignition
from an archive beside the initramfs; the installed system that has no DHCP has its network from a profile. Prints what
was seen on the way, and how long it took, as JSON.
Run by test_install; `python -m tests.lab.libvirt.installs STATE bios bios bios bios` measures.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import asyncssh

from lab.layout import Layout
from lab.machines.base import BootDevice, Disk, MachineSpec
from lab.machines.libvirt import LibvirtBackend
from lab.network import plan
from lab.node_image import ensure
from lab.node_image.tree import Tree
from metal_ipi.provider.live_iso import embed, minimal
from metal_ipi.provider.live_iso.iso9660 import Disc
from tests.lab.libvirt import boot_parts
from tests.lab.libvirt.boot_services import Answer, BootServices

PATIENCE = 420.0
AGAIN = "--again"
DISK_MIB = 4096
CONFIG = "config.ign"
"""Where Ignition looks for it in an initramfs."""
LEAN = boot_parts.LEAN_KARGS.split()
INSTALL = """#!/bin/bash
set -euo pipefail
trap 'echo $BASH_COMMAND >/run/failed' ERR
udevadm settle
curl --silent --show-error --fail --output /run/image {location}
echo '{sha256}  /run/image' | sha256sum -c
coreos-installer install --config-file /etc/coreos/installer.d/10-test.yaml --image-file /run/image --insecure
udevadm settle
ls /dev/disk/by-partlabel >/run/partitions
mv /run/partitions /run/done
"""
UNIT = """[Service]
Type=oneshot
ExecStart=/usr/local/bin/install
StandardOutput=journal+console
[Install]
WantedBy=multi-user.target
"""
DONE = "until [ -e /run/done ] || [ -e /run/failed ]; do sleep 0.5; done; cat /run/failed /run/done 2>/dev/null"
OBSERVE = {
    "cmdline": "cat /proc/cmdline",
    "machine_id": "cat /etc/machine-id",
    "generation": "cat /etc/generation",
    "boot": "while [ -e /boot/ignition.firstboot ]; do sleep 0.2; done; ls /boot",
    "mounts": 'awk \'$2 == "/" || $2 == "/boot" {print $2, $3, substr($4, 1, 2)}\' /proc/mounts',
    "mib": "df -m / | tail -n 1 | awk '{print $2}'",
    "console": "sed -n '/^# CONSOLE-SETTINGS-START/,/^# CONSOLE-SETTINGS-END/p' /boot/grub2/grub.cfg",
    "authority": "cat /etc/ssl/certs/ca-certificates.crt",
    "resolver": "cat /etc/resolv.conf",
    "profiles": "sudo -n sh -c 'cat /etc/NetworkManager/system-connections/*' 2>/dev/null",
    "system": "sudo -n systemctl is-system-running --wait",
    "labels": "ls /dev/disk/by-label",
    "afterburn": (
        "sudo -n systemctl start afterburn.service; sed -n s/^AFTERBURN_PACKET_HOSTNAME=//p /run/metadata/afterburn"
    ),
}
PROFILES = "/etc/test-network"
PROFILE = """[connection]
id=test
type=ethernet
interface-name=eth0

[ipv4]
method=manual
address1={address}/{prefix}
gateway={gateway}
dns={resolver};
may-fail=false

[ipv6]
method=disabled
"""
GET = """
cd /var/tmp
curl -sSf -o kernel {kernel} && curl -sSf -o initramfs {initramfs} && curl -sSf -o config {config} || exit
truncate --size=%4 initramfs && cat config >>initramfs
"""
KEXEC = f"""{GET}
sudo -n kexec --load kernel --initrd=initramfs --command-line='{{arguments}}'
sudo -n systemctl --no-block kexec
"""


@dataclass
class Machine:
    """A machine, what it boots from next, and the keys of its live and its installed system."""

    spec: MachineSpec
    live: asyncssh.SSHKey
    installed: asyncssh.SSHKey
    order: tuple[BootDevice, ...] = ("network",)


def machine(number: int, firmware: str) -> Machine:
    """With one disk, and firmware of that kind."""
    disk = Disk(serial=f"LAB{number}", size_mib=DISK_MIB)
    spec = replace(boot_parts.machine(number, 768), disks=(disk,), firmware=cast("Any", firmware))
    return Machine(spec, asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519"))


class Installs:
    """The machines, and the services that install them."""

    def __init__(self, layout: Layout, stream: Any, kinds: list[str]) -> None:
        self._layout = layout
        self.machines = [machine(number, kind) for number, kind in enumerate(kinds)]
        self.user = asyncssh.generate_private_key("ssh-ed25519")
        self.backend = LibvirtBackend(layout.state)
        self._formats = stream["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]
        self.pages = boot_parts.files(layout.boot)
        self.services = BootServices(layout, self.pages)
        for each in self.machines:
            self.publish(each, "first")

    def static(self, machine: Machine) -> bool:
        """UEFI machines are without DHCP as soon as they run Linux."""
        return machine.spec.firmware == "uefi"

    def platform(self, machine: Machine) -> str:
        """They also ask the metadata service, as machines of Metal do."""
        return "packet" if machine.spec.firmware == "uefi" else "metal"

    def network(self, machine: Machine) -> list[str]:
        """What the live system's kernel is told of the network."""
        address = machine.spec.addresses[0]
        named = f"{address.address}::{address.gateway}:255.255.255.254:{machine.spec.hostname}:eth0:none"
        return [f"ip={named}", f"nameserver={plan.DNS}"] if self.static(machine) else []

    def arguments(self, machine: Machine) -> str:
        """The kernel arguments of its live system."""
        return " ".join(
            (
                *("initrd=main", "initrd=config"),
                f"coreos.live.rootfs_url={self._formats['pxe']['rootfs']['location']}",
                *("ignition.firstboot", "ignition.platform.id=metal", "console=ttyS0,115200n8"),
                *(*self.network(machine), *LEAN),
            )
        )

    def archive(self, machine: Machine) -> str:
        """Where the archive with the Ignition of its live system is."""
        return f"http://{plan.BOOT}/{machine.spec.id}.img"

    def pointer(self, machine: Machine) -> bytes:
        """The Ignition of its live system: where the rest of it is."""
        merge = [{"source": f"http://{plan.BOOT}/{machine.spec.id}.live.ign"}]
        return json.dumps({"ignition": {"version": "3.3.0", "config": {"merge": merge}}}).encode()

    def start_from_disc(self, machine: Machine) -> None:
        """Put the live ISO, made for the machine, into its drive."""
        (whole,) = self._layout.boot.rglob("*live-iso*.iso")
        arguments = [word for word in self.arguments(machine).split() if not word.startswith("initrd=")]
        path = self._layout.state / f"{machine.spec.id}.iso"
        with whole.open("rb") as disc, path.open("w+b") as out:
            minimal.unpack(disc, out)
            for patch in embed.patches(Disc(out), arguments, {CONFIG: self.pointer(machine)}):
                out.seek(patch.offset)
                out.write(patch.data)
        machine.spec = replace(machine.spec, medium=str(path))
        machine.order = ("cd", "disk")

    def publish(self, machine: Machine, generation: str) -> None:
        """Serve what installs the machine as `generation`."""
        spec, pxe = machine.spec, self._formats["pxe"]
        own = f"http://{plan.BOOT}/{spec.id}"
        installer = {
            "dest-device": f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{spec.disks[0].serial}",
            **{"platform": self.platform(machine), "console": ["ttyS1,115200n8"]},
            "append-karg": ["test.appended", *LEAN],
        }
        profiles: dict[str, tuple[str, int]] = {}
        if self.static(machine):
            installer |= {"copy-network": True, "network-dir": PROFILES}
            address = spec.addresses[0]
            text = PROFILE.format(
                address=address.address, prefix=address.prefix, gateway=address.gateway, resolver=plan.DNS
            )
            profiles = {f"{PROFILES}/test.nmconnection": (text, 0o600)}
        node = self._ignition(machine, machine.installed, {"/etc/generation": (generation, 0o644)})
        del node["systemd"]
        if self.platform(machine) == "metal":
            installer |= {"ignition-url": f"{own}.ign", "insecure-ignition": True}
        script = INSTALL.format_map(self._formats["raw.zst"]["disk"])
        files = {
            "/usr/local/bin/install": (script.replace(boot_parts.BASE_URL, f"http://{plan.BOOT}"), 0o755),
            "/etc/coreos/installer.d/10-test.yaml": (json.dumps(installer), 0o644),
            **profiles,
        }
        live = self._ignition(machine, machine.live, files)
        live["systemd"]["units"] = [{"name": "install.service", "enabled": True, "contents": UNIT}]
        boot = (
            f"#!ipxe\nkernel {pxe['kernel']['location']} {self.arguments(machine)}\n"
            f"initrd --name main {pxe['initramfs']['location']}\n"
            f"initrd --name config {self.archive(machine)}\nboot\n"
        ).replace(boot_parts.BASE_URL, f"http://{plan.BOOT}")
        archive = Tree()
        archive.file(CONFIG, self.pointer(machine), 0o600)
        self.pages[f"{plan.BOOT}/{spec.id}.img"] = Answer(archive.cpio())
        address = spec.addresses[0].address
        documents = {f"{plan.BOOT}/{spec.id}.ign": node, f"{plan.BOOT}/{spec.id}.live.ign": live}
        documents |= {f"{plan.METADATA}/userdata@{address}": node}
        documents |= {f"{plan.METADATA}/metadata@{address}": cast("Any", boot_parts.metadata(spec))}
        self.pages[f"{plan.METADATA}/ipxe/{spec.id}"] = Answer(boot.encode())
        self.pages.update({name: Answer(json.dumps(document).encode()) for name, document in documents.items()})

    def _ignition(self, machine: Machine, key: asyncssh.SSHKey, files: dict[str, tuple[str, int]]) -> dict[str, Any]:
        config = boot_parts.ignition(
            machine.spec.hostname,
            key.export_private_key().decode(),
            self.user.export_public_key().decode().strip(),
            files,
        )
        return cast("dict[str, Any]", config)

    async def run(self, machine: Machine, host: asyncssh.SSHKey, *commands: str) -> list[str]:
        """Log in as soon as the machine with that key lets us, and run commands; what each printed."""
        return await boot_parts.until_login(machine.spec, self.user, host, *commands)

    async def observe(self, machine: Machine) -> dict[str, str]:
        """What the installed system is like."""
        return dict(zip(OBSERVE, await self.run(machine, machine.installed, *OBSERVE.values()), strict=True))

    async def installed(self, machine: Machine) -> str:
        """Wait for the installation to end, and reboot from disk; what the live system says."""
        (said,) = await self.run(machine, machine.live, DONE)
        machine.order = ("disk",)
        await self.run(machine, machine.live, "sudo -n systemctl --no-block reboot")
        return said

    async def walk(self, machine: Machine) -> dict[str, Any]:
        """From power on to the second boot from disk."""
        started = time.monotonic()
        await self.backend.power_on(machine.spec, lambda _: machine.order)
        live = await self.installed(machine)
        installed = time.monotonic()
        first = await self.observe(machine)
        up = time.monotonic()
        await self.run(machine, machine.installed, "sync")
        await self.backend.power_on(machine.spec, lambda _: machine.order)  # which cuts it first
        second = await self.observe(machine)
        seconds = {"installed": round(installed - started, 1), "up": round(up - installed, 1)}
        return {"live": live, "first": first, "second": second, "seconds": seconds}

    async def again(self, machine: Machine, kexec: str = KEXEC) -> dict[str, Any]:
        """Install a machine that runs once more, from itself."""
        before = machine.installed
        machine.live, machine.installed = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        self.publish(machine, "second")
        urls = {name: artifact["location"] for name, artifact in self._formats["pxe"].items()}
        urls["config"] = self.archive(machine)
        script = kexec.format_map({**urls, "arguments": self.arguments(machine)})
        (sent,) = await self.run(machine, before, script)
        return {"sent": sent, "live": await self.installed(machine), "first": await self.observe(machine)}


async def main(state: Path, arguments: list[str]) -> dict[str, Any]:
    """Install machines of these kinds of firmware, observe, clean up."""
    kinds = [argument for argument in arguments if argument != AGAIN]
    layout = boot_parts.facility(state)
    installs = Installs(layout, boot_parts.published(ensure(), layout), kinds)
    if AGAIN in arguments:
        installs.start_from_disc(installs.machines[0])
    async with boot_parts.running(installs.services, installs.backend, *(each.spec for each in installs.machines)):
        walks = (installs.walk(machine) for machine in installs.machines)
        seen = await asyncio.wait_for(asyncio.gather(*walks), PATIENCE)
        again = AGAIN in arguments and await asyncio.wait_for(installs.again(installs.machines[0]), PATIENCE)
    return {"seen": seen, "again": again, "authority": layout.ca.read_text().strip()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))))
