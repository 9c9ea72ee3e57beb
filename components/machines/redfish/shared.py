"""The servers of a rack, and the virtual machine beside them: plain data that all machines are declared from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi


@dataclass(frozen=True, kw_only=True)
class RedfishServer:
    """One server. Its BMC's account is part of the provider's configuration."""

    name: str
    """Its name there."""
    bmc: str
    """The URL that its BMC answers at."""
    mac: str
    """Of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    accept: Literal["empty", "wipe"]
    """`wipe`: whatever runs on it may be taken down."""


@dataclass(frozen=True, kw_only=True)
class VirtualMachine:
    """The bootstrap machine where no server is lent. Which libvirt runs it is part of the provider's configuration."""

    cluster: str
    """The cluster's domain, which marks it."""
    mac: str
    """Of its network card, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    bridge: str
    """The bridge its network card is on."""
    memory_mib: int
    """Its memory."""
    cpus: int
    """The number of its virtual CPUs."""
    boot_image: str | None
    """Path of an iPXE image where libvirt runs; None: its firmware boots by DHCP."""


@dataclass(frozen=True, kw_only=True)
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, RedfishServer]
    """By short host name; the bootstrap machine's, where there is one, is the server that is lent to it."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""
