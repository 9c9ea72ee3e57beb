"""Machines that really boot: libvirt domains under software emulation, DHCP, iPXE firmware and all that follows.

A machine of a rack is asked what to boot at every reset, so QEMU does not reset it: its domain ends, libvirt says why
(`guest-reset`), and it is started anew with the order of that moment. A guest that powers off (`guest-shutdown`) just
ends.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from lab.machines.base import BackendError, BootOrder, MachineSpec, Power, network_only, run
from lab.machines.libvirt_daemon import MACHINES, LibvirtDaemon
from lab.machines.libvirt_dhcp import IPV6_ROUTER, Dhcp
from lab.machines.libvirt_domain import ARCHITECTURE, MEDIUM, OVMF, SECURE_OVMF, disk_file, domain_xml, has_uefi
from lab.network import plan

PROGRAMS = ("dnsmasq", "ip", "libvirtd", "nsenter", "qemu-system-x86_64", "setpriv", "unshare", "virsh")
"""What the back end runs; Debian packages: dnsmasq-base, libvirt-clients, libvirt-daemon, libvirt-daemon-driver-qemu,
qemu-system-x86, ipxe-qemu; for UEFI also ovmf."""

_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_log = logging.getLogger(__name__)
_EVENT = re.compile(r"""event SHUTDOWN at [\d.]+ for domain '(.+?)': {"guest":true,"reason":"(.+?)"}""")


class LibvirtBackend:
    """The MachineBackend of virtual machines. It needs a bridge in its network namespace, and to be root there."""

    def __init__(self, directory: Path, *, bridge: str = plan.BRIDGE, guests: Sequence[MachineSpec] = ()) -> None:
        """`directory` keeps logs, DHCP's files and one folder per machine.

        `guests` are machines that others run: they get their addresses, and nothing else.
        """
        self.machines = directory / "machines"
        """One folder per machine, with its console."""
        self._bridge = bridge
        logs = directory / "libvirt"
        self._daemon = LibvirtDaemon(self.machines, logs / "libvirtd.log")
        self._dhcp = Dhcp(logs / "dhcp", logs / "dnsmasq.log", bridge)
        self._guests = guests
        self._specs: dict[str, MachineSpec] = {}
        self._orders: dict[str, BootOrder] = {}
        """The boot orders of machines whose resets the lab handles, as long as they have power."""
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._watch: asyncio.Task[None] | None = None
        self._watching = asyncio.Lock()
        self._reboots: set[asyncio.Task[None]] = set()
        self._logs = logs

    async def open(self) -> None:
        """Start libvirtd and DHCP and let machines reach each other over their gateways; raises BackendError."""
        missing = [name for name in PROGRAMS if shutil.which(name, path=_SEARCHED) is None]
        if missing:
            raise BackendError(f"virtual machines need {', '.join(missing)}, which this system does not have")
        try:
            await run("ip", "link", "show", "dev", self._bridge, "type", "bridge")
        except BackendError as error:
            raise BackendError(f"the lab has not made its bridge, {self._bridge}: {error}") from error
        for path in (self.machines, self._logs):
            path.mkdir(parents=True, exist_ok=True)
        settings = {"ip_forward": "1", "conf/all/send_redirects": "0", f"conf/{self._bridge}/send_redirects": "0"}
        for name, value in settings.items():
            (Path("/proc/sys/net/ipv4") / name).write_text(value)
        with suppress(BackendError):  # where IPv6 is off: just slower
            await run("ip", "address", "replace", IPV6_ROUTER, "dev", self._bridge, "nodad")
        for guest in self._guests:
            await self._dhcp.add(guest)
        await asyncio.gather(self._daemon.start(), self._dhcp.start())

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        """(Re)boot, whatever the machine did before. One that boots from the network only just resets when it does."""
        if spec.architecture != ARCHITECTURE:
            raise BackendError(f"{spec.hostname} is {spec.architecture}, and virtual machines here are {ARCHITECTURE}")
        async with self._locks[spec.id]:
            self._specs[spec.id] = spec
            await self._gateways("replace", spec)
            await self._dhcp.add(spec)
            await self._end(spec.id)
            if order is not network_only:
                await self._watched()
                self._orders[spec.id] = order
            await self._start(spec)

    async def power_off(self, machine_id: str) -> None:
        """Cut the power. Domains are transient: one that is off is not there."""
        async with self._locks[machine_id]:
            self._orders.pop(machine_id, None)
            await self._end(machine_id)

    async def power_state(self, machine_id: str) -> Power:
        """Whether there is a domain. A machine that resets itself has none for a moment, and power still."""
        return "on" if machine_id in self._orders or machine_id in await self._running() else "off"

    async def shutdown(self, machine_id: str) -> None:
        """Send the ACPI event of the power button."""
        async with self._locks[machine_id]:
            if machine_id in await self._running():
                await self._daemon.virsh("shutdown", machine_id, "--mode", "acpi")

    async def blank(self, machine_id: str, serials: Collection[str]) -> None:
        """Cut the power and remove disks: the next start makes new ones."""
        await self.power_off(machine_id)
        for serial in serials:
            (self.machines / machine_id / disk_file(serial)).unlink(missing_ok=True)

    async def delete(self, machine_id: str) -> None:
        """Cut the power and forget the machine, its addresses, its disks and its console."""
        await self.power_off(machine_id)
        await self._dhcp.remove(machine_id)
        spec = self._specs.pop(machine_id, None)
        if spec is not None:
            await self._gateways("delete", spec)
        shutil.rmtree(self.machines / machine_id, ignore_errors=True)

    def console(self, machine_id: str) -> bytes:
        """Everything both serial ports printed so far."""
        try:
            return (self.machines / machine_id / "console.log").read_bytes()
        except FileNotFoundError:
            return b""

    async def close(self) -> None:
        """Stop all machines, libvirtd and DHCP."""
        tasks = [*self._reboots, *([self._watch] if self._watch else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watch = None
        await asyncio.gather(self._daemon.stop(), self._dhcp.stop())
        for spec in self._specs.values():
            await self._gateways("delete", spec)
        self._specs.clear()

    async def _start(self, spec: MachineSpec) -> None:
        directory = self.machines / spec.id
        directory.mkdir(exist_ok=True)
        if spec.firmware == "uefi" and not has_uefi(secure=spec.secure_boot):
            needed = SECURE_OVMF if spec.secure_boot else OVMF
            raise BackendError(f"UEFI firmware needs {' and '.join(needed)}: install the package ovmf")
        for disk in spec.disks:
            path = directory / disk_file(disk.serial)
            if not path.exists():
                with path.open("xb") as file:
                    file.truncate(disk.size_mib << 20)
        asked = self._orders.get(spec.id)
        order = (asked or network_only)(spec.id)
        if "cd" in order:
            try:
                await asyncio.to_thread(shutil.copyfile, spec.medium, directory / MEDIUM)
            except OSError as error:
                raise BackendError(f"{spec.hostname}: the disc in its drive: {error}") from error
        xml = domain_xml(
            spec, bridge=self._bridge, directory=f"{MACHINES}/{spec.id}", order=order, resets=asked is None
        )
        await self._daemon.virsh("create", "/proc/self/fd/0", stdin=xml)

    async def _end(self, machine_id: str) -> None:
        if machine_id in await self._running():
            await self._daemon.virsh("destroy", machine_id)

    async def _running(self, *which: str) -> list[str]:
        return (await self._daemon.virsh("list", "--name", *which)).split()

    async def _watched(self) -> None:
        """See to it that resets are noticed."""
        async with self._watching:
            if self._watch is None:
                self._watch = asyncio.create_task(self._follow(await self._daemon.watch()))
        if self._watch.done():
            raise BackendError("resets of machines are no longer detected: virsh ended; start the lab again")

    async def _follow(self, events: asyncio.StreamReader) -> None:
        while line := await events.readline():
            event = _EVENT.search(line.decode(errors="replace"))
            if event is None or event[1] not in self._orders:
                continue
            task = asyncio.create_task(self._ended(event[1], reset=event[2] == "guest-reset"))
            self._reboots.add(task)
            task.add_done_callback(self._reboots.discard)

    async def _ended(self, machine_id: str, *, reset: bool) -> None:
        """Start a machine that has reset itself; not one that has meanwhile lost its power or been started anew."""
        async with self._locks[machine_id]:
            while machine_id in await self._running():
                if machine_id in await self._running("--state-running"):
                    return
                await asyncio.sleep(0.05)
            if not reset:
                self._orders.pop(machine_id, None)
            elif machine_id in self._orders:
                _log.info("%s resets itself", machine_id)
                try:
                    await self._start(self._specs[machine_id])
                except BackendError:
                    del self._orders[machine_id]
                    _log.exception("%s stays off", machine_id)

    async def _gateways(self, verb: str, spec: MachineSpec) -> None:
        """The facility's router is the bridge: it has the even side of each of the machine's /31 pairs.

        The gateway that a rack's machines share is there before them, and stays.
        """
        for address in spec.addresses:
            if address.gateway != plan.GATEWAY:
                with suppress(BackendError) if verb == "delete" else nullcontext():
                    await run("ip", "address", verb, f"{address.gateway}/{address.prefix}", "dev", self._bridge)
