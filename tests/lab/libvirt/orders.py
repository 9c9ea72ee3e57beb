"""A machine of a rack in the namespaces this process was started in: what it boots, reset by reset. Run by test_orders;
prints what was seen, as JSON.

The network boots a script that resets the machine. The disk prints and, the first time, resets it, too; then it powers
the machine off.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from lab.machines.base import Address, BootDevice, Disk, MachineSpec
from lab.machines.libvirt import LibvirtBackend
from lab.machines.libvirt_domain import disk_file
from lab.network import plan
from tests.lab.libvirt import boot_parts
from tests.lab.libvirt.boot_services import Answer, BootServices

PATIENCE = 60.0
SCRIPT = b"#!ipxe\necho from network ${net0/ip} ${net0/gateway} ${uuid}\nsleep 1\nreboot\n"
RESET = b"\xb0\xfe\xe6\x64"  # mov al,0xfe; out 0x64,al: the keyboard controller's reset line
POWER_OFF = b"\xba\x04\x06\xb8\x00\x20\xef"  # mov dx,0x604; mov ax,0x2000; out dx,ax: the PIIX4's ACPI
SPEC = MachineSpec(
    id="7c9e6679-7425-40de-944b-e07fc1f90ae7",
    hostname="server-0",
    mac="52:54:00:00:00:01",
    addresses=(Address(address="192.0.2.97", prefix=24, gateway=plan.GATEWAY, public=True),),
    memory_mib=256,
    cpus=1,
    disks=(Disk(serial="LAB0", size_mib=16), Disk(serial="LAB1", size_mib=16, rotational=True)),
    boot_url=f"http://{plan.BOOT}/boot/boot.ipxe",
)


def boot_sector(text: str, then: bytes) -> bytes:
    """A sector that prints to the first serial port, does `then`, and halts."""
    printed = b"".join(b"\xb0" + bytes([letter]) + b"\xee" for letter in text.encode())
    return (b"\xba\xf8\x03" + printed + then + b"\xf4\xeb\xfd").ljust(510, b"\0") + b"\x55\xaa"


async def main(state: Path) -> dict[str, Any]:
    """Power on, and see what becomes of it."""
    layout = boot_parts.facility(state)
    services = BootServices(layout, {f"{plan.BOOT}/boot/boot.ipxe": Answer(SCRIPT)})
    backend = LibvirtBackend(layout.state)
    asked: list[tuple[str, ...]] = []
    disk = backend.machines / SPEC.id / disk_file("LAB0")

    def order(_machine_id: str) -> tuple[BootDevice, ...]:
        answer: tuple[BootDevice, ...] = ("disk", "network") if asked else ("network", "disk")
        if len(asked) == 2:  # it has reset itself from disk: let it power off this time
            disk.write_bytes(boot_sector("last from disk\n", POWER_OFF).ljust(16 << 20, b"\0"))
        asked.append(answer)
        return answer

    async def off() -> None:
        while True:
            if await backend.power_state(SPEC.id) == "off":
                return
            await asyncio.sleep(0.05)

    async with boot_parts.running(services, backend, SPEC):
        before = await backend.power_state(SPEC.id)
        disk.parent.mkdir()
        disk.write_bytes(boot_sector("from disk\n", RESET).ljust(16 << 20, b"\0"))
        await backend.power_on(SPEC, order)
        during = await backend.power_state(SPEC.id)
        await asyncio.wait_for(off(), PATIENCE)
        files = sorted(path.name for path in disk.parent.iterdir())
        console = backend.console(SPEC.id).decode(errors="replace")
        kept = [path.stat().st_size for path in sorted(disk.parent.glob("disk-*"))]
        await backend.blank(SPEC.id, ["LAB0"])
        after = sorted(path.name for path in disk.parent.glob("disk-*"))
        await backend.delete(SPEC.id)
        gateway = await asyncio.create_subprocess_exec(
            *("ip", "-o", "-4", "address", "show", "to", plan.GATEWAY), stdout=asyncio.subprocess.PIPE
        )
        addresses, _ = await gateway.communicate()
    return {
        "before": before,
        "during": during,
        "asked": asked,
        "console": console,
        "files": files,
        "kept": kept,
        "after": after,
        "left": sorted(path.name for path in backend.machines.iterdir()),
        "gateway": addresses.decode(),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
