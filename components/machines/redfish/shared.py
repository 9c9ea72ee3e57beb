"""The servers of a rack: plain data from which all machines are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.machines.listed import ListedServer, VirtualMachine


@dataclass(frozen=True, kw_only=True)
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, ListedServer]
    """The servers by short host name. The bootstrap machine's entry is the server that is lent to it."""
    bmcs: Mapping[str, str]
    """The URLs of the servers' BMCs, by server."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, if it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete before a server is claimed."""
