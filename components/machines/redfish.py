"""Servers with a BMC, through our own provider (sushy).

A server is claimed, not ordered: its BMC is asked what it is, and one that runs something nobody of this stack
installed is refused unless the configuration consents. It is given no userdata: its Ignition comes from the installer,
and what it boots from a static tree of files, by its MAC address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi

from components.boot import site
from components.machines.contract import BgpNeighbour, MachineArgs
from provider.types import EphemeralMachine, LentServerArgs, RedfishMachine, RedfishMachineArgs


@dataclass(frozen=True, kw_only=True)
class RedfishServer:
    """One server; what opens its BMC is the provider's configuration."""

    name: str
    """Its name there."""
    mac: str
    """Of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    accept: Literal["empty", "wipe"]
    """`wipe`: whatever runs on it may be taken down."""


@dataclass(frozen=True, kw_only=True)
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, RedfishServer]
    """By short host name; the bootstrap machine's is the server that is lent to it."""


class Redfish(pulumi.ComponentResource):
    """The platform: servers of our own."""

    kind = "redfish"
    ignition_platform = "metal"
    metadata_url: str | None = None

    def __init__(self, name: str, args: RedfishArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:Redfish", name, None, opts)
        self.servers = args.servers
        self._child = pulumi.ResourceOptions(parent=self)
        self.register_outputs({"servers": sorted({server.name for server in args.servers.values()})})

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> RedfishServerMachine:
        """Claim a server that stays."""
        return RedfishServerMachine(name, args, self, opts)

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> LentServer:
        """Borrow a server for the time of the installation."""
        return LentServer(name, args, self, opts)

    def reserve_address(self, name: str) -> pulumi.Output[str]:
        """Nobody gives out addresses here."""
        raise NotImplementedError(f"{name}: servers of our own have no addresses to reserve")

    def reserve_block(self, name: str, quantity: int) -> pulumi.Output[str]:
        """Nobody gives out addresses here."""
        raise NotImplementedError(f"{name}: servers of our own have no {quantity} addresses to reserve")


class RedfishServerMachine(pulumi.ComponentResource):
    """A server of the facility."""

    def __init__(
        self, name: str, args: MachineArgs, platform: Redfish, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("metal-ipi:machines:RedfishServerMachine", name, None, opts)
        server = platform.servers[args.hostname]
        machine = RedfishMachine(
            f"{name}-server",
            RedfishMachineArgs(
                server=server.name,
                hostname=args.hostname,
                mac=server.mac,
                public_ipv4=server.address,
                private_ipv4=server.private_address,
                accept=server.accept,
                timeout_seconds=args.timeout,
            ),
            pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input("")
        # Consoles of BMCs are as many as there are vendors: none is read by us.
        self.console = pulumi.Output.from_input("")
        self.register_outputs({"machineId": self.machine_id, "publicIpv4": self.public_ipv4})

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """Nobody tells of any."""
        raise NotImplementedError("servers of our own have no BGP neighbours that a platform would name")


class LentServer:
    """A server that is the bootstrap machine first, from memory, and is installed as what it is to be afterwards."""

    def __init__(
        self, name: str, args: MachineArgs, platform: Redfish, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        server = platform.servers[args.hostname]
        assert args.boot.script is not None, "a lent server is handed nothing else"
        machine = EphemeralMachine(
            name,
            LentServerArgs(
                server=server.name,
                hostname=args.hostname,
                mac=server.mac,
                public_ipv4=server.address,
                private_ipv4=server.private_address,
                script=args.boot.script,
                chain=site.chain_script(),
                accept=server.accept,
                timeout_seconds=args.timeout,
            ),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input("")
        self.console = pulumi.Output.from_input("")
