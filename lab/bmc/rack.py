"""All servers of a rack, and their BMCs, in one process."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from lab.bmc import application
from lab.bmc.driver import Loop, SystemsDriver
from lab.bmc.identity import WIDE, Guest, network_of
from lab.bmc.identity import Server as Identity
from lab.bmc.redfish import Redfish
from lab.bmc.server import Server
from lab.bmc.wire import Https
from lab.machines.base import Address, Disk, MachineSpec, RackBackend
from lab.network import link, plan

MEMORY_MIB = 2048
DISK_MIB = 4096
BOOT_URL = f"http://{plan.BOOT_NAME}/artifacts/boot/boot.ipxe"
"""The script that DHCP names: the stable one of the site's boot tree, which whoever installs machines uploads."""


def spec(identity: Identity) -> MachineSpec:
    """A server's hardware: two network cards, a disk that rotates, and a smaller one that does not."""
    return MachineSpec(
        id=identity.uuid,
        hostname=identity.name,
        mac=identity.mac,
        addresses=_addresses(identity.address),
        ipv6=_ipv6(identity.address) if link.has_ipv6() and network_of(identity.address) is not WIDE else None,
        memory_mib=MEMORY_MIB,
        cpus=1,
        disks=(
            Disk(serial=f"{identity.serial}A", size_mib=DISK_MIB),
            Disk(serial=f"{identity.serial}B", size_mib=2 * DISK_MIB, rotational=True),
        ),
        further_macs=(second_mac(identity.mac),),
        boot_url=BOOT_URL,
    )


def second_mac(mac: str) -> str:
    """The MAC address of a server's second network card, which DHCP does not know."""
    return f"{mac[:12]}62{mac[14:]}"


def guest_spec(guest: Guest) -> MachineSpec:
    """The data for DHCP about a virtual machine that a stack makes; the lab does not emulate its hardware."""
    return MachineSpec(
        id="guest",
        hostname="guest",
        mac=guest.mac,
        addresses=_addresses(guest.address),
        memory_mib=0,
        cpus=0,
        boot_url=BOOT_URL,
    )


def _addresses(address: str) -> tuple[Address, ...]:
    where = network_of(address)
    return (Address(address=address, prefix=where.prefix, gateway=where.gateway, public=True),)


def _ipv6(address: str) -> Address:
    """The IPv6 address of a server: the same position in its range as that of the IPv4 address."""
    place = int(ipaddress.ip_address(address)) - int(ipaddress.ip_network(plan.SERVERS)[0])
    prefix = ipaddress.ip_network(plan.INFRASTRUCTURE_IPV6).prefixlen
    own = str(ipaddress.ip_network(plan.SERVERS_IPV6)[place])
    return Address(address=own, prefix=prefix, gateway=plan.GATEWAY_IPV6, public=True)


class Bmc:
    """One BMC with its server."""

    def __init__(self, identity: Identity, backend: RackBackend, directory: Path, tls: Path) -> None:
        """`directory` is its own; `tls` has the lab's certificates."""
        self.identity = identity
        self.spec = spec(identity)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._tls = tls
        self.server = Server(identity, self.spec, backend, directory / "server.json")
        self._redfish: Redfish | None = None
        self._https: Https | None = None

    def listen(self, address: str, port: int) -> int:
        """Serve Redfish; returns the port."""
        loop = Loop(asyncio.get_running_loop())
        driver = SystemsDriver(self.server, self.spec, loop)
        inner = application.load(driver, self.spec, self.identity.name, self._directory)
        self._redfish = Redfish(inner, self.server, self.spec, loop)
        self._https = Https(address, port, self._redfish, self._context)
        self._https.start()
        return self._https.port

    def restart(self) -> None:
        """Restart the BMC, not the server."""
        if self._redfish is not None:
            self._redfish.restart()

    async def close(self) -> None:
        """Stop serving."""
        if self._https is not None:
            await asyncio.to_thread(self._https.stop)
        await self.server.close()

    def _context(self) -> ssl.SSLContext | None:
        """The current certificate."""
        if self._redfish is None or self._redfish.away:
            return None
        fault = self.server.faults.strike("certificate")
        name = f"{self.identity.name}.{fault.which}" if fault else self.identity.name
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._tls / f"{name}.crt", self._tls / f"{name}.key")
        return context


class Rack:
    """All of them."""

    def __init__(self, identities: Sequence[Identity], backend: RackBackend, directory: Path, tls: Path) -> None:
        self._backend = backend
        self.bmcs = {each.name: Bmc(each, backend, directory / each.name, tls) for each in identities}

    async def open(self, listening: Callable[[Bmc], Awaitable[None]]) -> None:
        """Open the back end, restore the servers' power, and start the BMCs."""
        await self._backend.open()
        await asyncio.gather(*(bmc.server.resume() for bmc in self.bmcs.values()))
        for bmc in self.bmcs.values():
            await listening(bmc)

    async def close(self) -> None:
        """Stop everything."""
        await asyncio.gather(*(bmc.close() for bmc in self.bmcs.values()))
        await self._backend.close()
