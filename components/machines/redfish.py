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
from components.boot.ignition import NodeFile
from components.machines.contract import BgpNeighbour, MachineArgs, Role
from provider.types import (
    EphemeralMachine,
    LentServerArgs,
    LocalVmArgs,
    MachineOrder,
    RedfishMachine,
    RedfishMachineArgs,
)


@dataclass(frozen=True, kw_only=True)
class RedfishServer:
    """One server; what opens its BMC is the provider's configuration."""

    name: str
    """Its name there."""
    bmc: str
    """The URL that its BMC answers at."""
    mac: str
    """Of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    accept: Literal["empty", "wipe"]
    """`wipe`: whatever runs on it may be taken down."""


@dataclass(frozen=True, kw_only=True)
class VirtualMachine:
    """The bootstrap machine, where no server is lent to it; which libvirt runs it is the provider's configuration."""

    cluster: str
    """The cluster's domain, which marks it."""
    mac: str
    """Of its network card, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    bridge: str
    """The bridge its network card is on."""
    memory_mib: int
    """Its memory."""
    cpus: int
    """Its virtual CPUs."""
    boot_image: str | None
    """Path of an iPXE image where libvirt runs; None: DHCP leads its firmware on."""


@dataclass(frozen=True, kw_only=True)
class RedfishArgs:
    """The servers of a facility."""

    servers: Mapping[str, RedfishServer]
    """By short host name; the bootstrap machine's, where there is one, is the server that is lent to it."""
    bootstrap_vm: VirtualMachine | None = None
    """The bootstrap machine, where it is a virtual one."""
    after: Sequence[pulumi.Resource] = ()
    """What comes before a server is claimed."""


class Redfish(pulumi.ComponentResource):
    """The platform: servers of our own."""

    kind = "redfish"
    ignition_platform = "metal"
    metadata_url: str | None = None

    def __init__(self, name: str, args: RedfishArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:Redfish", name, None, opts)
        self.servers, self.bootstrap_vm = args.servers, args.bootstrap_vm
        self.ephemeral_kind = self.kind if args.bootstrap_vm is None else "local-vm"
        self.after = list(args.after)
        self.register_outputs({"servers": {server.name: server.bmc for server in args.servers.values()}})

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> RedfishServerMachine:
        """Claim a server that stays."""
        return RedfishServerMachine(name, args, self, opts)

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> BorrowedMachine:
        """Borrow a server for the time of the installation, or make a virtual machine."""
        return BorrowedMachine(name, args, self, opts)

    def network_files(self, hostname: str, role: Role) -> pulumi.Output[list[NodeFile]] | None:
        """Where DHCP does not tell it, the installer does: the first boot needs it before userdata is read."""
        return None

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
            pulumi.ResourceOptions(parent=self, delete_before_replace=True, depends_on=platform.after),
        )
        self.resource: pulumi.Resource = machine
        self.ordered: pulumi.Output[MachineOrder] | None = None
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


class BorrowedMachine:
    """The bootstrap machine, which runs from memory.

    It is a server that is installed as what it is to be afterwards, or a virtual machine that is gone then.
    """

    def __init__(
        self, name: str, args: MachineArgs, platform: Redfish, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        machine = EphemeralMachine(
            name,
            _local_vm(args, platform.bootstrap_vm)
            if platform.bootstrap_vm is not None
            else _lent_server(args, platform.servers[args.hostname]),
            pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(delete_before_replace=True, depends_on=platform.after)
            ),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input("")
        self.console = pulumi.Output.from_input("")


def _lent_server(args: MachineArgs, server: RedfishServer) -> LentServerArgs:
    assert args.boot.script is not None, "a lent server is handed nothing else"
    return LentServerArgs(
        server=server.name,
        hostname=args.hostname,
        mac=server.mac,
        public_ipv4=server.address,
        private_ipv4=server.private_address,
        script=args.boot.script,
        chain=site.chain_script(),
        accept=server.accept,
        disposable=args.disposable,
        timeout_seconds=args.timeout,
    )


def _local_vm(args: MachineArgs, vm: VirtualMachine) -> LocalVmArgs:
    assert args.boot.script is not None, "a virtual machine is handed nothing else"
    return LocalVmArgs(
        hostname=args.hostname,
        cluster=vm.cluster,
        mac=vm.mac,
        public_ipv4=vm.address,
        bridge=vm.bridge,
        memory_mib=vm.memory_mib,
        cpus=vm.cpus,
        boot_image=vm.boot_image,
        script=args.boot.script,
        chain=site.chain_script(),
        disposable=args.disposable,
        timeout_seconds=args.timeout,
    )
