"""`python -m lab.machines.boot_bench --count 6`: how long machines take from power on to SSH, all at once.

The yardstick for installing a cluster on the same machines: only what booting needs is there (bridge, DHCP, DNS,
metadata, files), in namespaces of its own that are gone afterwards. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import asyncssh

from lab.errors import LabError
from lab.layout import Layout
from lab.machines.base import Address, BackendError, MachineSpec
from lab.machines.boot_world import Answer, BootWorld
from lab.machines.libvirt import LibvirtBackend
from lab.network import certificates, link, plan
from lab.node_image import NodeImage, ensure
from lab.openshift import base_config

_INSIDE = "LAB_BOOT_BENCH_INSIDE"
BASE_URL = f"http://{plan.BOOT_NAME}"
KARGS = "ignition.firstboot ignition.platform.id=packet console=ttyS1,115200n8"
LEAN_KARGS = "quiet mitigations=off cryptomgr.notests"
"""What a lab's stack adds (`boot.kargs`): emulated processors gain nothing from mitigations, and a lot of time is spent
printing."""


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
    """What a machine of the bench is told: its name, its SSH identity, who may log in, and `more` files with modes."""
    files = {"/etc/hostname": (f"{hostname}\n", 0o644), "/etc/ssh/ssh_host_ed25519_key": (host_key, 0o600)}
    files |= more or {}
    return {
        "ignition": {"version": "3.3.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [authorized_key]}]},
        "storage": {
            "files": [
                {"path": path, "mode": mode, "overwrite": True, "contents": {"source": _data_url(text)}}
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
    """What the world answers: iPXE scripts, userdata and metadata of each machine."""
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


async def bench(state: Path, image: NodeImage, options: argparse.Namespace) -> dict[str, object]:
    """Boot the machines and log in to each; what it took."""
    layout = Layout.of(state)
    layout.make()
    certificates.ensure(layout)
    link.set_up()
    user_key = asyncssh.generate_private_key("ssh-ed25519")
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    machines = [machine(number, options.memory) for number in range(options.count)]
    configs = [
        ignition(spec.hostname, host_key.export_private_key().decode(), user_key.export_public_key().decode().strip())
        for spec in machines
    ]
    stream = image.publish(layout.boot, layout.ca.read_bytes(), BASE_URL, base_config.render(None))
    world = BootWorld(layout, {**pages(machines, stream, f"{KARGS} {options.kargs}", configs), **files(layout.boot)})
    backend = LibvirtBackend(layout.state)
    started = time.monotonic()
    try:
        await world.open()
        await backend.open()
        opened = time.monotonic()
        await asyncio.gather(*(backend.power_on(spec) for spec in machines))
        logins = (until_login(spec, user_key, host_key, options.command) for spec in machines)
        seconds = await asyncio.wait_for(asyncio.gather(*logins), options.timeout)
    finally:
        if options.consoles:
            options.consoles.mkdir(parents=True, exist_ok=True)
            for spec in machines:
                (options.consoles / f"{spec.hostname}.log").write_bytes(backend.console(spec.id))
        await backend.close()
        await world.close()
    each = [round(value - opened, 1) for value in seconds]
    sizes = {path.name: path.stat().st_size for path in (image.kernel, image.initramfs, image.rootfs)}
    return {"seconds": max(each), "each": each, "opening": round(opened - started, 1), "bytes": sizes}


async def until_login(spec: MachineSpec, user: asyncssh.SSHKey, host: asyncssh.SSHKey, command: str) -> float:
    """Log in as soon as the machine lets us, check that it is the right one; the time when that was done."""
    address = spec.addresses[0].address
    known = asyncssh.import_known_hosts(f"{address} {host.export_public_key().decode()}")
    while True:
        try:
            # A short patience: a packet that nobody was there for is sent again only after 1, 2, 4, ... seconds.
            _, probe = await asyncio.wait_for(asyncio.open_connection(address, 22), 0.5)
            probe.close()
            async with asyncssh.connect(
                address, username="core", client_keys=[user], known_hosts=known, config=None, connect_timeout=15
            ) as connection:
                result = await connection.run(f"cat /etc/hostname; {command}", check=True)
        except (OSError, asyncssh.ConnectionLost):
            await asyncio.sleep(0.2)
            continue
        seen = str(result.stdout)
        if seen.splitlines()[:1] != [spec.hostname]:
            raise BackendError(f"{address} says that it is {seen!r}, not {spec.hostname}")
        if command:
            print(seen, file=sys.stderr)
        return time.monotonic()


def main() -> int:
    """Build the image outside, boot inside namespaces of our own."""
    parser = argparse.ArgumentParser(prog="python -m lab.machines.boot_bench", description=__doc__)
    parser.add_argument("--count", type=int, default=6, help="machines that boot at once")
    parser.add_argument("--memory", type=int, default=768, help="MiB of each")
    parser.add_argument("--kargs", default=LEAN_KARGS, help="kernel arguments beside the necessary ones")
    parser.add_argument("--timeout", type=float, default=600, help="seconds to wait for all of them")
    parser.add_argument("--consoles", type=Path, help="keep the serial consoles in this directory")
    parser.add_argument("--command", default="", help="run this on each machine and print what it says")
    options = parser.parse_args()
    try:
        image = ensure()
        if _INSIDE not in os.environ:
            return subprocess.run(
                [
                    *("unshare", *(() if os.geteuid() == 0 else ("-U", "-r")), "-n", "-m", "-p", "--fork"),
                    *(
                        "--kill-child",
                        "--mount-proc",
                        "sh",
                        "-c",
                        '"$@"; exit $?',
                        "init",
                        sys.executable,
                        "-m",
                        "lab.machines.boot_bench",
                        *sys.argv[1:],
                    ),
                ],
                env={**os.environ, _INSIDE: "1"},
                check=False,
            ).returncode
        with tempfile.TemporaryDirectory(prefix="boot-bench-") as state:
            print(json.dumps(asyncio.run(bench(Path(state), image, options))))
    except (LabError, BackendError) as error:
        print(f"boot bench: {error}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"boot bench: not all machines answered within {options.timeout:g} s; see --consoles", file=sys.stderr)
        return 1
    return 0


def _data_url(text: str) -> str:
    from urllib.parse import quote

    return f"data:,{quote(text)}"


def _dig(document: object, *names: str) -> object:
    for name in names:
        document = cast("dict[str, object]", document)[name]
    return document


if __name__ == "__main__":
    raise SystemExit(main())
