"""A permanent machine: a server of the rack, which is claimed."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import BgpNeighbour, MachineArgs
from metal_ipi.components.machines.former import of_component
from metal_ipi.components.machines.redfish.shared import RedfishArgs
from metal_ipi.provider.types import MachineOrder, RedfishMachine, RedfishMachineArgs


class RedfishServerMachine:
    """A server of the rack."""

    def __init__(self, name: str, args: MachineArgs, rack: RedfishArgs, opts: pulumi.ResourceOptions) -> None:
        server = rack.servers[args.node.hostname]
        machine = RedfishMachine(
            f"{name}-server",
            RedfishMachineArgs(
                server=server.name,
                hostname=args.node.hostname,
                mac=server.mac,
                public_ipv4=server.address,
                private_ipv4=server.private_address,
                accept=server.accept,
                timeout_seconds=args.timeout,
            ),
            pulumi.ResourceOptions.merge(
                of_component("metal-ipi:machines:RedfishServerMachine", name, opts),
                pulumi.ResourceOptions(delete_before_replace=True, depends_on=list(rack.after)),
            ),
        )
        self.resource: pulumi.Resource = machine
        self.ordered: pulumi.Output[MachineOrder] | None = None
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input(server.ipv6_address or "")
        self.ipv6 = server.ipv6_address
        # The consoles of BMCs differ by vendor; we do not read them.
        self.console = pulumi.Output.from_input("")

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """Empty: BMCs have no BGP."""
        return pulumi.Output.from_input(list[BgpNeighbour]())
