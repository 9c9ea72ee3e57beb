"""`python -m tests.bench.time_to_ssh --count 6`: how long machines take from power on to SSH, all at once.

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
from pathlib import Path

import asyncssh

from lab.errors import LabError
from lab.layout import Layout
from lab.machines.base import BackendError, MachineSpec
from lab.machines.libvirt import LibvirtBackend
from lab.network import certificates, link
from lab.node_image import ensure
from lab.node_image.image import NodeImage
from lab.openshift import base_config
from tests.lab.libvirt.boot_parts import BASE_URL, KARGS, LEAN_KARGS, files, ignition, machine, pages, until_login
from tests.lab.libvirt.boot_services import BootServices

_INSIDE = "LAB_BOOT_BENCH_INSIDE"


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
    services = BootServices(
        layout, {**pages(machines, stream, f"{KARGS} {options.kargs}", configs), **files(layout.boot)}
    )
    backend = LibvirtBackend(layout.state)
    started = time.monotonic()
    try:
        await services.open()
        await backend.open()
        opened = time.monotonic()
        await asyncio.gather(*(backend.power_on(spec) for spec in machines))
        logins = (_login(spec, user_key, host_key) for spec in machines)
        seconds = await asyncio.wait_for(asyncio.gather(*logins), options.timeout)
    finally:
        if options.consoles:
            options.consoles.mkdir(parents=True, exist_ok=True)
            for spec in machines:
                (options.consoles / f"{spec.hostname}.log").write_bytes(backend.console(spec.id))
        await backend.close()
        await services.close()
    each = [round(value - opened, 1) for value in seconds]
    sizes = {
        path.name: path.stat().st_size
        for path in (image.directory / name for name in ("kernel", "initramfs", "rootfs"))
    }
    return {"seconds": max(each), "each": each, "opening": round(opened - started, 1), "bytes": sizes}


async def _login(spec: MachineSpec, user: asyncssh.SSHKey, host: asyncssh.SSHKey) -> float:
    await until_login(spec, user, host)
    return time.monotonic()


def main() -> int:
    """Build the image outside, boot inside namespaces of our own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.time_to_ssh", description=__doc__)
    parser.add_argument("--count", type=int, default=6, help="machines that boot at once")
    parser.add_argument("--memory", type=int, default=768, help="MiB of each")
    parser.add_argument("--kargs", default=LEAN_KARGS, help="kernel arguments beside the necessary ones")
    parser.add_argument("--timeout", type=float, default=600, help="seconds to wait for all of them")
    parser.add_argument("--consoles", type=Path, help="keep the serial consoles in this directory")
    options = parser.parse_args()
    try:
        image = ensure()
        if _INSIDE not in os.environ:
            user = () if os.geteuid() == 0 else ("-U", "-r")
            alone = ["unshare", *user, "-n", "-m", "-p", "--fork", "--kill-child", "--mount-proc"]
            command = [*alone, "sh", "-c", '"$@"; exit $?', "init", sys.executable, "-m", "tests.bench.time_to_ssh"]
            env = {**os.environ, _INSIDE: "1"}
            return subprocess.run([*command, *sys.argv[1:]], env=env, check=False).returncode
        with tempfile.TemporaryDirectory(prefix="boot-bench-") as state:
            print(json.dumps(asyncio.run(bench(Path(state), image, options))))
    except (LabError, BackendError) as error:
        print(f"boot bench: {error}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"boot bench: not all machines answered within {options.timeout:g} s; see --consoles", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
