"""What machines boot from with the fewest services: their descriptions, Ignition configs, metadata and boot scripts."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import asyncssh

from lab.layout import Layout
from lab.machines.base import Address, BackendError, MachineSpec
from lab.machines.libvirt import LibvirtBackend
from lab.network import certificates, link, plan
from lab.node_image.image import NodeImage
from lab.openshift import base_config
from tests.lab.libvirt.boot_services import Answer, BootServices

BASE_URL = f"http://{plan.BOOT_NAME}"
KARGS = "ignition.firstboot ignition.platform.id=packet console=ttyS1,115200n8"
LEAN_KARGS = "quiet mitigations=off cryptomgr.notests"
"""What a lab's stack adds (`boot.kargs`): emulated processors gain nothing from mitigations, and a lot of time is spent
printing."""


def facility(state: Path) -> Layout:
    """The facility's certificates, and its network in the namespace of this process."""
    layout = Layout.of(state)
    layout.make()
    certificates.ensure(layout)
    link.set_up()
    return layout


def published(image: NodeImage, layout: Layout) -> dict[str, Any]:
    """The stream document of an image that the boot server has."""
    return image.publish(layout.boot, layout.ca.read_bytes(), BASE_URL, base_config.render(None))


@asynccontextmanager
async def running(services: BootServices, backend: LibvirtBackend, *machines: MachineSpec) -> AsyncGenerator[None]:
    """Services and machines, until the block ends; the consoles of `machines` tell why it waited in vain."""
    try:
        await services.open()
        await backend.open()
        yield
    except TimeoutError:
        for spec in machines:
            print(f"--- {spec.hostname}\n{backend.console(spec.id).decode(errors='replace')}", file=sys.stderr)
        raise
    finally:
        await backend.close()
        await services.close()


async def until_console(backend: LibvirtBackend, spec: MachineSpec, text: bytes) -> str:
    """Wait until the console says `text`; the line that says it."""
    while True:
        for line in backend.console(spec.id).splitlines():
            if text in line:
                return line.decode(errors="replace").strip()
        await asyncio.sleep(0.5)


def machine(number: int, memory_mib: int) -> MachineSpec:
    """The `number`-th machine, with its /31 of the documentation range."""
    pair = f"198.51.100.{2 * number}", f"198.51.100.{2 * number + 1}"
    return MachineSpec(
        id=f"machine-{number}",
        hostname=f"node-{number}",
        mac=f"52:54:00:00:00:{number:02x}",
        addresses=(Address(address=pair[1], prefix=31, gateway=pair[0], public=True),),
        memory_mib=memory_mib,
        cpus=1,
    )


def ignition(
    hostname: str, host_key: str, authorized_key: str, more: Mapping[str, tuple[str, int]] | None = None
) -> dict[str, object]:
    """What a machine is told: its name, its SSH identity, who may log in, and `more` files with modes."""
    files = {"/etc/hostname": (f"{hostname}\n", 0o644), "/etc/ssh/ssh_host_ed25519_key": (host_key, 0o600)}
    files |= more or {}
    return {
        "ignition": {"version": "3.3.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [authorized_key]}]},
        "storage": {
            "files": [
                {"path": path, "mode": mode, "overwrite": True, "contents": {"source": f"data:,{quote(text)}"}}
                for path, (text, mode) in files.items()
            ]
        },
        "systemd": {"units": [{"name": "afterburn.service", "enabled": True}]},
    }


def metadata(spec: MachineSpec) -> dict[str, object]:
    """Metal's metadata document, as far as Ignition and Afterburn read it."""
    addresses = [
        {
            **{"id": f"{spec.id}-{index}", "address_family": 4, "netmask": "255.255.255.254", "public": address.public},
            **{"management": True, "address": address.address, "gateway": address.gateway},
        }
        for index, address in enumerate(spec.addresses)
    ]
    return {
        **{"id": spec.id, "hostname": spec.hostname, "iqn": "iqn.2026-01.net.packet:device", "plan": "lab.small"},
        **{"facility": plan.FACILITY, "tags": [], "ssh_keys": []},
        "network": {
            "bonding": {"mode": 4},
            "interfaces": [{"name": "eth0", "mac": spec.mac, "bond": None}],
            "addresses": addresses,
        },
        "phone_home_url": "https://metadata.packet.net/phone-home",
        "user_state_url": "https://metadata.packet.net/events",
    }


def pages(machines: Sequence[MachineSpec], stream: object, kargs: str, configs: Sequence[object]) -> dict[str, Answer]:
    """What the services answer: iPXE scripts, userdata and metadata of each machine."""
    pxe = cast(
        "dict[str, dict[str, str]]", _dig(stream, "architectures", "x86_64", "artifacts", "metal", "formats", "pxe")
    )
    kernel, initramfs, rootfs = (pxe[name]["location"] for name in ("kernel", "initramfs", "rootfs"))
    script = (
        f"#!ipxe\nkernel {kernel} initrd=main coreos.live.rootfs_url={rootfs} {kargs}\n"
        f"initrd --name main {initramfs}\nboot\n"
    )
    answers: dict[str, Answer] = {}
    for spec, config in zip(machines, configs, strict=True):
        address = spec.addresses[0].address
        answers[f"{plan.METADATA}/ipxe/{spec.id}"] = Answer(script.replace(BASE_URL, f"http://{plan.BOOT}").encode())
        answers[f"{plan.METADATA}/userdata@{address}"] = Answer(json.dumps(config).encode())
        answers[f"{plan.METADATA}/metadata@{address}"] = Answer(json.dumps(metadata(spec)).encode())
    return answers


def files(boot_root: Path) -> dict[str, Answer]:
    """What the boot server answers: every file under its root."""
    found = (path for path in boot_root.rglob("*") if path.is_file())
    return {f"{plan.BOOT}/{path.relative_to(boot_root).as_posix()}": Answer(path) for path in found}


async def until_login(spec: MachineSpec, user: asyncssh.SSHKey, host: asyncssh.SSHKey, *commands: str) -> list[str]:
    """Log in as soon as the machine allows it, check that it is the right one, and run commands; what each printed."""
    address = spec.addresses[0].address
    known = asyncssh.import_known_hosts(f"{address} {host.export_public_key().decode()}")
    while True:
        try:
            # A short patience: a packet that nobody was there for is sent again only after 1, 2, 4, ... seconds.
            _, probe = await asyncio.wait_for(asyncio.open_connection(address, 22), 0.5)
            probe.close()
            options = {"username": "core", "client_keys": [user], "known_hosts": known, "connect_timeout": 15}
            connection = await asyncssh.connect(address, config=None, **options)
            seen = str((await connection.run("cat /etc/hostname", check=True)).stdout).strip()
            break
        except (OSError, asyncssh.ConnectionLost):
            await asyncio.sleep(0.2)
    printed: list[str] = []
    async with connection:
        if seen != spec.hostname:
            raise BackendError(f"{address} says that it is {seen!r}, not {spec.hostname}")
        printed += [str((await connection.run(command)).stdout).strip() for command in commands]
    return printed


def _dig(document: object, *names: str) -> object:
    for name in names:
        document = cast("dict[str, object]", document)[name]
    return document
