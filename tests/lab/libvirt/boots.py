"""Three machines in the namespaces this process was started in: a good one, one with a damaged root file system, one
whose Ignition is wrong. Run by test_boot; prints what became of them, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import asyncssh

from lab.machines.libvirt import LibvirtBackend
from lab.network import plan
from lab.node_image import ensure
from tests.lab.libvirt import boot_parts
from tests.lab.libvirt.boot_services import Answer, BootServices

PATIENCE = 240.0
OBSERVE = """
cat /proc/sys/kernel/hostname
sed -n 's/^OSTREE_VERSION=//p' /etc/os-release
ip -o -4 address show dev eth0 | awk '{print $4}'
ls /etc/ssh/*key*
for i in $(seq 60); do [ -e /run/done ] && break; sleep 1; done; cat /run/done
sudo -n id -u
journalctl --no-pager | grep -c 'unit of the test ran'
sudo -n cat /etc/.ignition-result.json | tr -d '\\n '
"""
UNIT = """[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo unit of the test ran; echo done >/run/done'
[Install]
WantedBy=multi-user.target
"""


async def main(state: Path) -> dict[str, Any]:
    """Boot, observe, clean up."""
    layout, image = boot_parts.facility(state), ensure()
    stream = boot_parts.published(image, layout)
    user, host = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    machines = [boot_parts.machine(number, 768) for number in range(3)]
    good, damaged, wrong = machines
    configs: list[Any] = [
        boot_parts.ignition(
            spec.hostname, host.export_private_key().decode(), user.export_public_key().decode().strip()
        )
        for spec in machines
    ]
    configs[0]["systemd"]["units"].append({"name": "test.service", "enabled": True, "contents": UNIT})
    configs[2]["storage"]["files"][0]["contents"]["verification"] = {"hash": f"sha512-{'0' * 128}"}
    kargs = f"{boot_parts.KARGS} {boot_parts.LEAN_KARGS}"
    pages = {**boot_parts.pages(machines, stream, kargs, configs), **boot_parts.files(layout.boot)}
    script = pages[f"{plan.METADATA}/ipxe/{damaged.id}"].body
    assert isinstance(script, bytes)
    elsewhere = re.sub(rb"(coreos\.live\.rootfs_url=)\S+", rb"\1http://%b/damaged" % plan.BOOT.encode(), script)
    pages[f"{plan.METADATA}/ipxe/{damaged.id}"] = Answer(elsewhere)
    rootfs = bytearray((image.directory / "rootfs").read_bytes())
    rootfs[len(rootfs) // 2] ^= 1
    pages[f"{plan.BOOT}/damaged"] = Answer(bytes(rootfs))
    services, backend = BootServices(layout, pages), LibvirtBackend(layout.state)
    async with boot_parts.running(services, backend, *machines):
        await asyncio.gather(*(backend.power_on(spec) for spec in machines))
        seen, mismatch, failure = await asyncio.wait_for(
            asyncio.gather(
                boot_parts.until_login(good, user, host, OBSERVE),
                boot_parts.until_console(backend, damaged, b"rootfs hash mismatch"),
                boot_parts.until_console(backend, wrong, b"Ignition failed: "),
            ),
            PATIENCE,
        )
        consoles = {spec.hostname: backend.console(spec.id).decode(errors="replace") for spec in machines}
        for spec in machines:
            await backend.delete(spec.id)
            await backend.delete(spec.id)
        forgotten = [backend.console(spec.id).decode() for spec in machines]
    return {
        "seen": seen[0].splitlines(),
        "release": image.release,
        "mismatch": mismatch,
        "failure": failure,
        "consoles": consoles,
        "forgotten": forgotten,
        "posted": [(client, path) for client, path, _ in services.posted],
        "host_key": host.export_private_key().decode(),
        "left": sorted(path.name for path in backend.machines.iterdir()),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
