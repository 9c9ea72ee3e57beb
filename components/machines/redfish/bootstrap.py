"""The machine that does not stay: a server that is lent, or a virtual machine. It runs from memory."""

from __future__ import annotations

import pulumi

from metal_ipi.components.boot import site
from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.local_vm import local_vm
from metal_ipi.components.machines.redfish.shared import RedfishArgs, RedfishServer
from metal_ipi.provider.types import EphemeralMachine, LentServerArgs


class BorrowedMachine:
    """A server that is installed afterwards as the worker that it is to be, or a virtual machine that is deleted."""

    def __init__(
        self, name: str, args: MachineArgs, rack: RedfishArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        machine = EphemeralMachine(
            name,
            local_vm(args, rack.bootstrap_vm)
            if rack.bootstrap_vm is not None
            else _lent_server(args, rack.servers[args.node.hostname]),
            pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(delete_before_replace=True, depends_on=list(rack.after))
            ),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input("")
        self.console = pulumi.Output.from_input("")


def _lent_server(args: MachineArgs, server: RedfishServer) -> LentServerArgs:
    assert args.boot.script is not None, "a lent server boots its script"
    return LentServerArgs(
        server=server.name,
        hostname=args.node.hostname,
        mac=server.mac,
        public_ipv4=server.address,
        private_ipv4=server.private_address,
        script=args.boot.script,
        chain=site.chain_script(),
        accept=server.accept,
        disposable=args.disposable,
        timeout_seconds=args.timeout,
    )
