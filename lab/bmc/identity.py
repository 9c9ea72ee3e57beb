"""The identities of a rack's servers: created at the lab's first start, and never changed."""

from __future__ import annotations

import ipaddress
import secrets
import uuid
from dataclasses import dataclass

from lab.errors import LabError
from lab.network import plan

LARGEST = 16
"""Servers in the largest rack."""


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


def make(count: int, ca_path: str) -> list[Server]:
    """A rack of `count` servers."""
    if not 0 < count <= LARGEST:
        raise LabError(f"a rack has 1 to {LARGEST} servers, not {count}")
    return [
        Server(
            name=f"server-{number}",
            uuid=str(uuid.uuid4()),
            serial=f"LAB{secrets.token_hex(4).upper()}",
            mac=f"52:54:00:72:61:{number:02x}",
            address=str(ipaddress.ip_network(plan.SERVERS)[1 + number]),
            bmc=Bmc(
                address=f"https://{bmc_address(number)}",
                username="admin",
                password=secrets.token_urlsafe(12)[:16],  # IPMI 2.0 takes up to 20 bytes
                ca_path=ca_path,
            ),
        )
        for number in range(count)
    ]


def bmc_address(number: int) -> str:
    """The address of the BMC of a rack's `number`-th server."""
    return str(ipaddress.ip_network(plan.BMCS)[1 + number])
