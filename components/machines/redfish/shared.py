"""The servers of a rack: plain data that all machines are declared from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi

from metal_ipi.components.machines.local_vm import VirtualMachine


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
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, RedfishServer]
    """By short host name; the bootstrap machine's, where there is one, is the server that is lent to it."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""
