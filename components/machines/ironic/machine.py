"""A permanent machine: a server that was claimed from Ironic."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import BgpNeighbour
from metal_ipi.provider.types import IronicMachine, MachineOrder


class IronicServerMachine:
    """A server that was claimed."""

    def __init__(self, claim: IronicMachine, ipv6: str | None) -> None:
        self.resource: pulumi.Resource = claim
        self.ordered: pulumi.Output[MachineOrder] | None = None
        self.machine_id = claim.machine_id
        self.public_ipv4 = claim.public_ipv4
        self.private_ipv4 = claim.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input(ipv6 or "")
        self.ipv6 = ipv6
        # Ironic's consoles are provided by its conductors; we do not read them.
        self.console = pulumi.Output.from_input("")

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """Empty: Ironic has no BGP."""
        return pulumi.Output.from_input(list[BgpNeighbour]())
