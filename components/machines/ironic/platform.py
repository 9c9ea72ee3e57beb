"""Servers from Ironic: which resource declares what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.contract import MachineArgs, Reserved
from metal_ipi.components.machines.ironic.bootstrap import lent_node
from metal_ipi.components.machines.ironic.machine import IronicServerMachine
from metal_ipi.components.machines.ironic.shared import IronicArgs
from metal_ipi.components.machines.listed import BorrowedMachine, local_vm
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import IronicMachine, IronicMachineArgs


class Ironic(pulumi.ComponentResource):
    """The platform: servers of your own, through Ironic."""

    kind = "ironic"
    metadata_url: str | None = None
    delivers_user_data = False

    def __init__(self, name: str, args: IronicArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:Ironic", name, None, opts)
        self._args = args
        self.ephemeral_kind = self.kind if args.bootstrap_vm is None else "local-vm"
        self.reserved: Mapping[str, Reserved] = {}
        self.shared: Mapping[str, pulumi.Input[Any]] = {}
        # All servers are claimed here: a lent server is claimed before its worker is declared.
        self._claims = {node: self._claim(node) for node in args.servers}
        self.register_outputs({"ironic": args.endpoint})

    def _claim(self, node: Node) -> IronicMachine:
        server = self._args.servers[node]
        return IronicMachine(
            f"{node.hostname}-server",
            IronicMachineArgs(
                server=server.name,
                hostname=node.hostname,
                mac=server.mac,
                public_ipv4=server.address,
                private_ipv4=server.private_address,
                accept=server.accept,
                timeout_seconds=self._args.timeout,
            ),
            pulumi.ResourceOptions(parent=self, delete_before_replace=True, depends_on=list(self._args.after)),
        )

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> IronicServerMachine:
        """The server that was claimed for a permanent machine."""
        return IronicServerMachine(self._claims[args.node], self._args.servers[args.node].ipv6_address)

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> BorrowedMachine:
        """Borrow a server for the time of the installation, or create a virtual machine."""
        after = self._args.after
        if self._args.bootstrap_vm is not None:
            return BorrowedMachine(name, local_vm(args, self._args.bootstrap_vm), opts, after=after)
        assert self._args.lent is not None, "a server is lent where no virtual machine is made"
        server = self._args.servers[self._args.lent]
        made = lent_node(args, server, by_network=server.name in self._args.by_network)
        claim = self._claims[self._args.lent]
        return BorrowedMachine(name, made, opts, after=(*after, claim), ipv6=server.ipv6_address)

    def network_files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """None: without DHCP, the installer configures the network before userdata is read."""
        return None
