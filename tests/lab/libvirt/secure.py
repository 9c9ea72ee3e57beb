"""A machine whose firmware has Secure Boot, with the keys that servers come with, in the namespaces this process was
started in: what it refuses, and what it boots. Run by test_secure_boot; prints what was seen, as JSON.

An iPXE that nobody signed is refused. The live ISO, customized as for a server, is started: shim, GRUB, kernel. It
installs the machine, which boots its disk then, and is installed once more by kexec, of a signed kernel only.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.live_iso.writer import disc
from lab.machines.base import MachineSpec
from lab.machines.libvirt import LibvirtBackend
from lab.node_image import ensure
from tests.lab.libvirt import boot_parts
from tests.lab.libvirt.installs import GET, Installs

KIND = "uefi"
PATIENCE = 900
"""In seconds, for each of the three steps. On a processor that is free, the longest takes a quarter of it."""
REFUSED = b"Access Denied"
LOCKED = "sudo -n dmesg | grep -o 'Kernel is locked down from EFI Secure Boot' | head -1"
KEXEC = f"""{GET}
cp kernel broken
printf x | dd of=broken bs=1 seek=3000000 conv=notrunc 2>/dev/null
sudo -n kexec -s --load broken --command-line=x 2>/dev/null && echo 'took a kernel whose signature is wrong'
sudo -n kexec -s --load kernel --initrd=initramfs --command-line='{{arguments}}' || exit
sudo -n systemctl --no-block kexec
echo sent
"""


async def refusal(backend: LibvirtBackend, spec: MachineSpec, medium: Path) -> str:
    """What the firmware says of an iPXE on a disc."""
    await backend.power_on(replace(spec, secure_boot=True, medium=str(medium)), lambda _: ("cd",))
    line = await boot_parts.until_console(backend, spec, REFUSED)
    await backend.power_off(spec.id)
    return line


async def main(state: Path, ipxe: bytes) -> dict[str, Any]:
    """Refuse, install, observe, clean up."""
    layout = boot_parts.facility(state)
    stream = boot_parts.published(ensure(), layout)
    medium = layout.state / "ipxe.iso"
    medium.write_bytes(disc({"images/efiboot.img": ipxe}, label="ipxe", efi="images/efiboot.img").data)
    installs = Installs(layout, stream, [KIND])
    (machine,) = installs.machines
    times = [time.monotonic()]
    async with boot_parts.running(installs.services, installs.backend, machine.spec):
        refused = await asyncio.wait_for(refusal(installs.backend, machine.spec, medium), PATIENCE)
        times.append(time.monotonic())
        machine.spec = replace(machine.spec, secure_boot=True)
        installs.start_from_disc(machine)
        seen = await asyncio.wait_for(installs.walk(machine), PATIENCE)
        times.append(time.monotonic())
        (locked,) = await installs.run(machine, machine.installed, LOCKED)
        console = installs.backend.console(machine.spec.id).decode(errors="replace")
        again = await asyncio.wait_for(installs.again(machine, KEXEC), PATIENCE)
        times.append(time.monotonic())
    seconds = [round(after - before, 1) for before, after in itertools.pairwise(times)]
    return {"refused": refused, "seen": seen, "console": console, "locked": locked, "again": again, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes()))))
