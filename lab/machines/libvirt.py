"""Machines that really boot: libvirt domains under software emulation, DHCP, iPXE firmware and all that follows."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from lab.machines.base import BackendError, BootOrder, MachineSpec, network_only
from lab.machines.libvirt_daemon import MACHINES, LibvirtDaemon
from lab.machines.libvirt_dhcp import IPV6_ROUTER, Dhcp
from lab.machines.libvirt_domain import domain_xml
from lab.network import plan

PROGRAMS = ("dnsmasq", "ip", "libvirtd", "nsenter", "qemu-system-x86_64", "setpriv", "unshare", "virsh")
"""What the back end runs; Debian packages: dnsmasq-base, libvirt-clients, libvirt-daemon, libvirt-daemon-driver-qemu,
qemu-system-x86, ipxe-qemu."""


class LibvirtBackend:
    """The MachineBackend of virtual machines. It needs a bridge in its network namespace, and to be root there."""

    def __init__(self, directory: Path, *, bridge: str = plan.BRIDGE) -> None:
        """`directory` keeps logs, DHCP's files and one folder per machine."""
        self.machines = directory / "machines"
        """One folder per machine, with its console."""
        self._bridge = bridge
        logs = directory / "libvirt"
        self._daemon = LibvirtDaemon(self.machines, logs / "libvirtd.log")
        self._dhcp = Dhcp(logs / "dhcp", logs / "dnsmasq.log", bridge)
        self._specs: dict[str, MachineSpec] = {}
        self._logs = logs

    async def open(self) -> None:
        """Start libvirtd and DHCP and let machines reach each other over their gateways; raises BackendError."""
        missing = [name for name in PROGRAMS if shutil.which(name, path=_search_path()) is None]
        if missing:
            raise BackendError(f"virtual machines need {', '.join(missing)}, which this system does not have")
        status, _ = await _ip("link", "show", "dev", self._bridge, "type", "bridge")
        if status:
            raise BackendError(f"{self._bridge} is not a bridge of this network namespace: the lab makes it first")
        for path in (self.machines, self._logs):
            path.mkdir(parents=True, exist_ok=True)
        settings = {"ip_forward": "1", "conf/all/send_redirects": "0", f"conf/{self._bridge}/send_redirects": "0"}
        for name, value in settings.items():
            (Path("/proc/sys/net/ipv4") / name).write_text(value)
        await _ip(
            "address", "replace", IPV6_ROUTER, "dev", self._bridge, "nodad"
        )  # fails where IPv6 is off: just slower
        await asyncio.gather(self._daemon.start(), self._dhcp.start())

    async def power_on(self, spec: MachineSpec, order: BootOrder = network_only) -> None:
        """Boot from the network, whatever the machine did before."""
        if order is not network_only:
            raise BackendError("libvirt machines have no disk to boot from yet")
        self._specs[spec.id] = spec
        await self._gateways("replace", spec)
        await self._dhcp.add(spec)
        await self.power_off(spec.id)
        directory = self.machines / spec.id
        directory.mkdir(exist_ok=True)
        xml = domain_xml(spec, bridge=self._bridge, console=f"{MACHINES}/{spec.id}/console.log")
        await self._daemon.virsh("create", "/proc/self/fd/0", stdin=xml)

    async def power_off(self, machine_id: str) -> None:
        """Cut the power. Domains are transient: one that is off is not there."""
        if machine_id in (await self._daemon.virsh("list", "--name")).split():
            await self._daemon.virsh("destroy", machine_id)

    async def delete(self, machine_id: str) -> None:
        """Cut the power and forget the machine, its addresses and its console."""
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
        await asyncio.gather(self._daemon.stop(), self._dhcp.stop())
        for spec in self._specs.values():
            await self._gateways("delete", spec)
        self._specs.clear()

    async def _gateways(self, verb: str, spec: MachineSpec) -> None:
        """The facility's router is the bridge: it has the even side of each of the machine's /31 pairs."""
        for address in spec.addresses:
            status, problem = await _ip("address", verb, f"{address.gateway}/{address.prefix}", "dev", self._bridge)
            if status and verb != "delete":
                raise BackendError(f"gateway {address.gateway} of {spec.hostname}: {problem}")


async def _ip(*arguments: str) -> tuple[int, str]:
    """Run `ip`; its status and what it complained about."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("ip", *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=pipe)
    _, err = await process.communicate()
    return process.returncode or 0, err.decode(errors="replace").strip()


def _search_path() -> str:
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
