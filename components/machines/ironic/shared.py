"""The servers that are had from Ironic: plain data that all machines are declared from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.machines.listed import ListedServer, VirtualMachine
from metal_ipi.components.machines.node import Node


@dataclass(frozen=True, kw_only=True)
class IronicArgs:
    """The servers of a facility."""

    endpoint: str
    """URL of Ironic's API."""
    servers: Mapping[Node, ListedServer]
    """By the machines that they are to be."""
    timeout: int
    """Seconds that Ironic may take for one step of a server."""
    by_network: frozenset[str] = frozenset()
    """The names of servers that boot from the network; all others boot a disc."""
    lent: Node | None = None
    """The machine whose server is the bootstrap machine first; None where none is lent."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""
