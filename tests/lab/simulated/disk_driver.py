"""A rack of one server with two disks, in the namespaces this process was started in, and what becomes of it.

Run by test_disks as `unshare … python -m tests.lab.simulated.disk_driver DIR`; prints what it saw, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncssh

from lab.layout import Layout
from lab.machines.base import Address, BootDevice, Disk, MachineSpec
from lab.machines.simulated import SimulatedBackend, Surroundings
from lab.network import certificates
from lab.openshift import build
from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.boot.ignition import config
from metal_ipi.components.boot.installer import InstallPlan, live_config, live_name, marker_file
from metal_ipi.components.boot.site import chain_script

SERVER, MACHINE, MAC = "192.0.2.12", "192.0.2.97", "52:54:00:00:00:61"
BOOT = f"http://{SERVER}"
RELEASE = "1.2.3"
GENERATION = "1" * 16
SEED = "A" * 43 + "="
LIVE = (
    f"initrd=main coreos.live.rootfs_url={BOOT}/rootfs ignition.firstboot ignition.platform.id=metal "
    f"ignition.config.url={BOOT}/live.ign ip={MACHINE}::192.0.2.1:255.255.255.0:server:eth0:none nameserver=192.0.2.53"
)
SCRIPT = f"#!ipxe\nkernel {BOOT}/kernel {LIVE}\ninitrd --name main {BOOT}/initramfs\nboot\n"
SPEC = MachineSpec(
    id="server-0",
    hostname="server",
    mac=MAC,
    addresses=(Address(address=MACHINE, prefix=24, gateway="192.0.2.1", public=True),),
    memory_mib=2048,
    cpus=2,
    disks=(Disk(serial="first", size_mib=4096), Disk(serial="second", size_mib=64, rotational=True)),
    boot_url=f"{BOOT}/boot/boot.ipxe",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Rack:
    """The server, the files it boots, and what its BMC would say it boots from."""

    def __init__(self, state: Path) -> None:
        self.layout = Layout.of(state)
        self.layout.make()
        certificates.ensure(self.layout)
        self.user = asyncssh.generate_private_key("ssh-ed25519")
        self.asked: list[str] = []
        self.orders: list[tuple[BootDevice, ...]] = []
        """What is answered next; the last one stays."""
        self.around = Surroundings(
            ca=self.layout.ca,
            boot_server=BOOT,
            lab_openshift=build.ensure(),
            boot_delay=0.02,
            boot_retry=0.1,
        )
        self.backend = SimulatedBackend(state / "machines", self.around, ranges=("192.0.2.96/27",))
        self.directory = state / "machines" / SPEC.id

    def order(self, machine_id: str) -> tuple[BootDevice, ...]:
        """Asked by the firmware."""
        self.asked.append(machine_id)
        return self.orders.pop(0) if len(self.orders) > 1 else self.orders[0]

    async def on(self, *orders: tuple[BootDevice, ...]) -> None:
        """Power on, or reset."""
        self.orders = list(orders)
        await self.backend.power_on(SPEC, self.order)

    async def ssh(self, command: str, expected: Callable[[str], bool] = bool) -> str:
        """What a command prints, once it prints what is expected."""
        last: object = None
        for _ in range(200):
            try:
                last = await self._once(command)
                if last and expected(last):
                    return last
            except (OSError, asyncssh.Error) as error:
                last = error
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{command}: {last}\n{self.console()}")

    async def leave(self, command: str) -> None:
        """Run a command that ends the system, once; the answer may be lost."""
        with contextlib.suppress(asyncssh.Error, ConnectionResetError):
            await self._once(command)

    async def _once(self, command: str) -> str:
        options: dict[str, Any] = {"username": "core", "client_keys": [self.user], "known_hosts": None}
        async with asyncssh.connect(MACHINE, 22, config=None, **options) as connection:
            result = await connection.run(command, timeout=10)
        if result.exit_status is None or result.exit_status < 0:  # the machine went down meanwhile
            raise ConnectionResetError(f"{command} did not end: {result.stdout}{result.stderr}")
        return f"{result.stdout}{result.stderr}"

    async def printed(self, words: str, since: int = 0) -> None:
        """Wait for the console to show something."""
        for _ in range(400):
            if words in self.console()[since:]:
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{words}: {self.console()[since:]}")

    def console(self) -> str:
        """All that it printed."""
        return self.backend.console(SPEC.id).decode()

    def second_disk(self) -> str:
        """The digest of the disk that nothing installs to."""
        return hashlib.sha256((self.directory / "disks/second").read_bytes()).hexdigest()

    def publish(self) -> None:
        """The installer; what it installs is what the live system carries."""
        keys = [self.user.export_public_key().decode().strip()]
        marker = marker_file(cluster="rack.test", machine="server", generation=GENERATION)
        pointer = config(authorized_keys=keys, host_key=host_key(SEED, "server"), files=[marker], links=[], units=[])
        plan = InstallPlan(
            cluster="rack.test",
            machine="server",
            generation=GENERATION,
            platform_id="metal",
            device={"serial": "first"},
            pointer=pointer,
            image=None,
            consoles=("ttyS0,115200n8",),
            kernel_arguments=("quiet", "rd.neednet=1"),
        )
        live = live_config(plan, authorized_keys=keys, host_key=host_key(SEED, live_name("server")))
        self.put("live.ign", live.encode())

    def put(self, name: str, content: bytes) -> None:
        """A file of the boot server."""
        path = self.layout.boot / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

    def serve(self) -> None:
        """The boot server, with what is the same for every installation."""
        rootfs = f"ID=rhcos-lab\nOSTREE_VERSION='{RELEASE}'\n".encode()
        initramfs = {"kind": "simulated-initramfs", "rootfs_sha256": hashlib.sha256(rootfs).hexdigest()}
        self.put("kernel", b"k")
        self.put("rootfs", rootfs)
        self.put("initramfs", json.dumps(initramfs).encode())
        self.put("boot/boot.ipxe", chain_script().encode())
        self.put(f"boot/mac-{MAC.replace(':', '-')}.ipxe", SCRIPT.encode())
        handler = functools.partial(_Quiet, directory=str(self.layout.boot))
        server = http.server.ThreadingHTTPServer((SERVER, 80), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


STATUS = "cat /run/metal-ipi/install.json"
MARKER = "cat /boot/metal-ipi/installation.json"
LOOK = f"{MARKER} /etc/metal-ipi/installation.json; . /etc/os-release; echo $OSTREE_VERSION; cat /proc/cmdline"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


async def observe(rack: Rack) -> dict[str, Any]:
    """Walk through everything; see test_disks for what is expected."""
    seen: dict[str, Any] = {}
    await rack.backend.open()
    await rack.on(("disk",))
    await rack.printed("No bootable device")
    await _installation(rack, seen)
    await _power_off(rack, seen)
    await rack.leave("setsid --fork sleep 600 </dev/null >/dev/null 2>&1")
    seen["second disk"].append(rack.second_disk())
    await _restart(rack, seen)
    await _rescue(rack, seen)
    await _blank(rack, seen)
    await rack.backend.delete(SPEC.id)
    seen["left"] = [path.name for path in rack.directory.parent.iterdir()]
    await rack.backend.close()
    return seen


def _has(words: str) -> Callable[[str], bool]:
    return lambda text: words in text


async def _installation(rack: Rack, seen: dict[str, Any]) -> None:
    """Once from the network, then from the disk."""
    rack.asked.clear()
    await rack.on(("network", "disk"), ("disk",))
    seen["installed"] = json.loads(await rack.ssh(STATUS, _has("done")))
    await rack.ssh("dd if=/dev/urandom of=/dev/vdb bs=1M count=1 status=none; echo written")
    seen["disks"] = json.loads(await rack.ssh("lsblk -J -b -o NAME,SERIAL,SIZE,ROTA,LABEL"))["blockdevices"]
    seen["second disk"] = [rack.second_disk()]
    await rack.leave("systemctl reboot")
    seen["first boot"] = (await rack.ssh(LOOK, _has("BOOT_IMAGE"))).splitlines()
    first = await rack.ssh(f"echo kept > /var/kept; echo gone > /run/gone; {BOOT_ID}")
    await rack.leave("reboot")
    seen["second boot"] = (await rack.ssh(f"cat /var/kept; ls /run; {BOOT_ID}", lambda text: first not in text)).split()
    seen["cmdline"] = (await rack.ssh("cat /proc/cmdline")).split()
    seen["asked"] = len(rack.asked)


async def _power_off(rack: Rack, seen: dict[str, Any]) -> None:
    """Off from inside and by the button; it stays off."""
    states: list[str] = [await rack.backend.power_state(SPEC.id)]
    for end in ("systemctl poweroff", None):
        before = len(rack.console())
        if end is None:
            await rack.backend.shutdown(SPEC.id)
        else:
            await rack.leave(end)
        await rack.printed("Powering off", before)
        states.append(await rack.backend.power_state(SPEC.id))
        await rack.on(("disk",))
        await rack.ssh(BOOT_ID)
    seen["power"] = states


async def _rescue(rack: Rack, seen: dict[str, Any]) -> None:
    """A disk that has lost its boot partition."""
    await rack.ssh("wipefs --all /dev/vda3; echo wiped")
    before = len(rack.console())
    await rack.on(("disk",))
    await rack.printed("grub rescue>", before)
    seen["rescue"] = await rack.backend.power_state(SPEC.id)


async def _blank(rack: Rack, seen: dict[str, Any]) -> None:
    """The disk that it boots from is made as good as new."""
    await rack.backend.blank(SPEC.id, ["first"])
    seen["blank"] = await rack.backend.power_state(SPEC.id)
    before = len(rack.console())
    await rack.on(("disk",))
    await rack.printed("No bootable device", before)
    seen["second disk"].append(rack.second_disk())


async def _restart(rack: Rack, seen: dict[str, Any]) -> None:
    """The process of the back end ends, and another one goes on."""
    boot = await rack.ssh(BOOT_ID)
    await rack.backend.close()
    rack.backend = SimulatedBackend(rack.directory.parent, rack.around, ranges=("192.0.2.96/27",))
    await rack.backend.open()
    running = sorted(rack.backend.running())
    rack.asked, rack.orders = [], [("disk",)]
    rack.backend.attend(SPEC.id, rack.order)
    again = await rack.ssh(BOOT_ID)
    await rack.leave("reboot")
    after = await rack.ssh(BOOT_ID, lambda text: boot not in text)
    seen["restart"] = {"running": running, "same boot": again == boot, "asked": len(rack.asked)}
    seen["rebooted"] = after != boot


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def main() -> None:
    """Build the rack, observe, print."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "address", "add", f"{SERVER}/32", "dev", "lo")
    rack = Rack(Path(sys.argv[1]))
    rack.serve()
    rack.publish()
    seen = asyncio.run(observe(rack))
    mounts = Path("/proc/self/mounts").read_text()
    processes = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    seen["left processes"] = [line for line in processes.splitlines() if "sleep 600" in line]
    seen["left mounts"] = [line for line in mounts.splitlines() if "/machines/" in line]
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
