"""The machine that does not stay: a server that is lent, or a virtual machine. It runs from memory."""

from __future__ import annotations

import pulumi

from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.ironic.shared import IronicServer
from metal_ipi.provider.types import EphemeralMachine, LentNodeArgs, LocalVmArgs


class BorrowedMachine:
    """A server that is installed afterwards as the worker that it is to be, or a virtual machine that is deleted."""

    def __init__(self, name: str, args: LentNodeArgs | LocalVmArgs, opts: pulumi.ResourceOptions) -> None:
        machine = EphemeralMachine(name, args, opts)
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input("")
        self.console = pulumi.Output.from_input("")


def lent_node(args: MachineArgs, server: IronicServer) -> LentNodeArgs:
    """What our provider has the lent server boot."""
    assert args.boot.script is not None, "a lent server boots its script"
    return LentNodeArgs(
        server=server.name,
        hostname=args.node.hostname,
        mac=server.mac,
        public_ipv4=server.address,
        private_ipv4=server.private_address,
        script=args.boot.script,
        disposable=args.disposable,
        timeout_seconds=args.timeout,
    )
