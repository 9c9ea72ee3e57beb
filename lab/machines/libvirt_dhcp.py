"""DHCP for booting machines: dnsmasq on the facility's bridge, without its DNS half.

As on Metal, a machine gets its first public IPv4 and the way to its iPXE script, nothing else. Each machine of Metal
has a /31 of its own, so netmask and router are options per machine. dnsmasq starts anew when machines come or go: told
to read its files again (SIGHUP), dnsmasq 2.90 sooner or later crashes. Leases are for ever, so nobody else notices.

Router advertisements are there for iPXE alone: it waits 16 s for one before it believes that there is no IPv6. They
name no default router.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from pathlib import Path

from lab.machines.base import BackendError, MachineSpec
from lab.network import plan

IPXE_URL = f"http://{plan.METADATA}/ipxe"
"""The metadata service hands out a machine's iPXE script at IPXE_URL/<device id>."""
RANGES = ("198.51.100.0/24", "198.18.0.0/15", plan.INFRASTRUCTURE)
"""Networks of public addresses: the usual one, the one that takes over when it is full, and that of a rack."""
IPV6_NETWORK = "2001:db8::"
IPV6_ROUTER = f"{IPV6_NETWORK}1/64"
"""The bridge needs an address of the network that is advertised on it."""

_STARTED = b": started, version"


def configuration(directory: Path, bridge: str) -> str:
    """dnsmasq's configuration file."""
    ranges = (ipaddress.ip_network(network) for network in RANGES)
    lines = [
        "port=0",
        "user=root",
        "group=root",  # a change of identity would undo that it dies with us
        "keep-in-foreground",
        f"interface={bridge}",
        "bind-interfaces",
        "no-ping",  # the addresses are ours: looking whether somebody has one already costs 3 s
        "dhcp-authoritative",
        "log-dhcp",
        "log-facility=-",
        f"dhcp-leasefile={directory / 'leases'}",
        f"dhcp-hostsfile={directory / 'hosts'}",
        f"dhcp-optsfile={directory / 'options'}",
        f"dhcp-option=option:dns-server,{plan.DNS}",
        "dhcp-option=encap:175,176,1b",  # iPXE's no-pxedhcp: do not wait for a proxy DHCP server
        "enable-ra",
        f"dhcp-range={IPV6_NETWORK},ra-only",
        f"ra-param={bridge},0,0",
        *(f"dhcp-range={network.network_address},static,{network.netmask}" for network in ranges),
    ]
    return "".join(f"{line}\n" for line in lines)


def hosts(machines: Iterable[MachineSpec]) -> str:
    """One reservation per machine; the machine's tag selects its options."""
    return "".join(f"{m.mac},set:{_tag(m)},{m.addresses[0].address},infinite\n" for m in machines)


def options(machines: Iterable[MachineSpec]) -> str:
    """Netmask, router and boot file of each machine."""
    lines: list[str] = []
    for machine in machines:
        public = machine.addresses[0]
        netmask = ipaddress.ip_network(f"0.0.0.0/{public.prefix}").netmask
        values = {"netmask": netmask, "router": public.gateway, "bootfile-name": boot_file(machine)}
        lines += [f"tag:{_tag(machine)},option:{name},{value}\n" for name, value in values.items()]
    return "".join(lines)


def boot_file(machine: MachineSpec) -> str:
    """The URL of a machine's iPXE script."""
    return machine.boot_url or f"{IPXE_URL}/{machine.id}"


def _tag(machine: MachineSpec) -> str:
    return "m" + machine.mac.replace(":", "")


class Dhcp:
    """dnsmasq as a child of this process."""

    def __init__(self, directory: Path, log: Path, bridge: str) -> None:
        """`directory` is for its files alone; `log` takes every request and answer."""
        self._directory = directory
        self._log = log
        self._bridge = bridge
        self._machines: dict[str, MachineSpec] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._restarting = asyncio.Lock()
        self._stale = False
        self._open = False

    async def start(self) -> None:
        """Start it; raises BackendError with its last words when it does not come up."""
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / "dnsmasq.conf").write_text(configuration(self._directory, self._bridge))
        await self._start()
        self._open = True

    async def add(self, machine: MachineSpec) -> None:
        """Answer this machine from now on."""
        if self._machines.get(machine.id) != machine:
            self._machines[machine.id] = machine
            await self._restart()

    async def remove(self, machine_id: str) -> None:
        """Forget a machine; nothing happens when it is unknown."""
        if self._machines.pop(machine_id, None) is not None:
            await self._restart()

    async def stop(self) -> None:
        """End dnsmasq."""
        self._open = False
        await self._stop()

    async def _restart(self) -> None:
        """Start anew with the machines of this moment: one restart serves all who were waiting for one."""
        self._stale = True
        async with self._restarting:
            if self._stale and self._open:
                await self._stop()
                await self._start()

    async def _start(self) -> None:
        (self._directory / "hosts").write_text(hosts(self._machines.values()))
        (self._directory / "options").write_text(options(self._machines.values()))
        self._stale = False
        with self._log.open("ab") as log:
            before = log.tell()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *("setpriv", "--pdeathsig", "KILL", "dnsmasq", f"--conf-file={self._directory / 'dnsmasq.conf'}"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            except OSError as error:
                raise BackendError(f"dnsmasq: {error.strerror or error}") from error
        while _STARTED not in (said := self._log.read_bytes()[before:]):
            if self._process.returncode is not None:
                raise BackendError(f"dnsmasq: {said.decode(errors='replace').strip() or self._process.returncode}")
            await asyncio.sleep(0.02)

    async def _stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
        self._process = None
