"""The servers of a rack: which resource declares what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.contract import MachineArgs, Reserved
from metal_ipi.components.machines.listed import BorrowedMachine, local_vm
from metal_ipi.components.machines.node import Node
from metal_ipi.components.machines.redfish.bootstrap import lent_server
from metal_ipi.components.machines.redfish.machine import RedfishServerMachine
from metal_ipi.components.machines.redfish.shared import RedfishArgs


class Redfish(pulumi.ComponentResource):
    """The platform: servers of your own."""

    kind = "redfish"
    metadata_url: str | None = None
    delivers_user_data = False

    def __init__(self, name: str, args: RedfishArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:Redfish", name, None, opts)
        self._rack = args
        self.ephemeral_kind = self.kind if args.bootstrap_vm is None else "local-vm"
        self.reserved: Mapping[str, Reserved] = {}
        self.shared: Mapping[str, pulumi.Input[Any]] = {}
        self.register_outputs({"servers": args.bmcs})

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> RedfishServerMachine:
        """Claim a server for a permanent machine."""
        return RedfishServerMachine(name, args, self._rack, opts)

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> BorrowedMachine:
        """Borrow a server for the time of the installation, or create a virtual machine."""
        rack = self._rack
        if rack.bootstrap_vm is not None:
            return BorrowedMachine(name, local_vm(args, rack.bootstrap_vm), opts, after=rack.after)
        server = rack.servers[args.node.hostname]
        return BorrowedMachine(name, lent_server(args, server), opts, after=rack.after, ipv6=server.ipv6_address)

    def network_files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """None: without DHCP, the installer configures the network before userdata is read."""
        return None
