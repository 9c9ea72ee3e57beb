"""The servers from Ironic: plain data from which all machines are declared."""

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
    """The servers, by the machines that they become."""
    timeout: int
    """Seconds that Ironic may take for one step of a server."""
    by_network: frozenset[str] = frozenset()
    """The names of servers that boot from the network; all others boot a disc."""
    lent: Node | None = None
    """The machine whose server is lent to the bootstrap machine first. None: no server is lent."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, if it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete before a server is claimed."""
