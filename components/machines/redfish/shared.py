"""The servers of a rack: plain data that all machines are declared from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.machines.listed import ListedServer, VirtualMachine


@dataclass(frozen=True, kw_only=True)
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, ListedServer]
    """By short host name; the bootstrap machine's, where there is one, is the server that is lent to it."""
    bmcs: Mapping[str, str]
    """The URLs that their BMCs answer at, by server."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""
