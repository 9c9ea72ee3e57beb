"""The servers that are had from Ironic: plain data that all machines are declared from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi

from metal_ipi.components.machines.local_vm import VirtualMachine
from metal_ipi.components.machines.node import Node


@dataclass(frozen=True, kw_only=True)
class IronicServer:
    """One server. How Ironic reaches it is part of the provider's configuration."""

    name: str
    """Its name there."""
    mac: str
    """Of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    accept: Literal["empty", "wipe"]
    """`wipe`: whatever runs on it may be taken down."""


@dataclass(frozen=True, kw_only=True)
class IronicArgs:
    """The servers of a facility."""

    endpoint: str
    """URL of Ironic's API."""
    servers: Mapping[Node, IronicServer]
    """By the machines that they are to be."""
    lent: Node | None = None
    """The machine whose server is the bootstrap machine first; None where none is lent."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""
