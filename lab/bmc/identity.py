"""The identities of a rack's servers: created at the lab's first start, and never changed."""

from __future__ import annotations

import ipaddress
import secrets
import uuid
from dataclasses import dataclass

from lab.errors import LabError
from lab.network import plan

LARGEST = 16
"""Servers in the largest rack of the infrastructure's network. More, of simulated machines, have a wide one."""
MOST = 400
"""Servers in the largest rack of all."""


@dataclass(frozen=True, kw_only=True)
class Bmc:
    """How to reach a server's BMC."""

    address: str
    """URL of its Redfish service."""
    username: str
    password: str
    ca_path: str


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server as its owner knows it; its IPMI has the BMC's address and credentials."""

    name: str
    uuid: str
    serial: str
    mac: str
    address: str
    """The address that its first network interface gets by DHCP."""
    bmc: Bmc

    @property
    def host(self) -> str:
        """The BMC's address."""
        return self.bmc.address.removeprefix("https://")


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A virtual machine that a stack may make of the lab's libvirt: the lab knows its address, and runs none itself."""

    uri: str
    """libvirt's connection URI inside the lab."""
    bridge: str
    mac: str
    address: str
    """The address that it gets by DHCP."""


def guest(uri: str) -> Guest:
    """The one of a rack."""
    address = ipaddress.ip_network(plan.SERVERS)[-2]
    return Guest(uri=uri, bridge=plan.BRIDGE, mac="52:54:00:72:61:ff", address=str(address))


@dataclass(frozen=True, kw_only=True)
class Network:
    """Where a rack's servers are."""

    gateway: str
    prefix: int
    bmcs: str
    """The BMCs, from the first address on."""
    servers: str


_OWN = Network(gateway=plan.GATEWAY, prefix=plan.INFRASTRUCTURE_PREFIX, bmcs=plan.BMCS, servers=plan.SERVERS)
WIDE = Network(
    gateway=plan.WIDE_GATEWAY,
    prefix=ipaddress.ip_network(plan.WIDE).prefixlen,
    bmcs=plan.WIDE_BMCS,
    servers=plan.WIDE_SERVERS,
)


def network(count: int) -> Network:
    """That of a rack with so many servers."""
    return _OWN if count <= LARGEST else WIDE


def network_of(address: str) -> Network:
    """That of the rack of a server, by its address."""
    return WIDE if ipaddress.ip_address(address) in ipaddress.ip_network(plan.WIDE) else _OWN


def make(count: int, ca_path: str, *, most: int = LARGEST) -> list[Server]:
    """A rack of `count` servers, at most `most`."""
    if not 0 < count <= most:
        raise LabError(f"a rack has 1 to {most} servers, not {count}")
    where = network(count)
    return [
        Server(
            name=f"server-{number}",
            uuid=str(uuid.uuid4()),
            serial=f"LAB{secrets.token_hex(4).upper()}",
            mac=f"52:54:00:{0x72 + number // 128:02x}:61:{number % 128:02x}",
            address=str(ipaddress.ip_network(where.servers)[1 + number]),
            bmc=Bmc(
                address=f"https://{ipaddress.ip_network(where.bmcs)[1 + number]}",
                username="admin",
                password=secrets.token_urlsafe(12)[:16],  # IPMI 2.0 takes up to 20 bytes
                ca_path=ca_path,
            ),
        )
        for number in range(count)
    ]
