"""What platforms whose servers are listed have in common: a server, and the machine that does not stay.

That one is a server that is lent, or a virtual machine; it runs from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi

from metal_ipi.components.boot import site
from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.provider.types import EphemeralMachine, LentNodeArgs, LentServerArgs, LocalVmArgs


@dataclass(frozen=True, kw_only=True)
class ListedServer:
    """One server. How it is reached is part of the provider's configuration."""

    name: str
    """Its name there."""
    mac: str
    """Of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    ipv6_address: str | None
    """The IPv6 address that it has besides; None: none."""
    accept: Literal["empty", "wipe"]
    """`wipe`: whatever runs on it may be taken down."""


@dataclass(frozen=True, kw_only=True)
class VirtualMachine:
    """The bootstrap machine where no server is lent. Which libvirt runs it is part of the provider's configuration."""

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
    """The number of its virtual CPUs."""
    boot_image: str | None
    """Path of an iPXE image where libvirt runs; None: its firmware boots by DHCP."""


def local_vm(args: MachineArgs, vm: VirtualMachine) -> LocalVmArgs:
    """What our provider makes it of."""
    assert args.boot.script is not None, "a virtual machine boots its script"
    return LocalVmArgs(
        hostname=args.node.hostname,
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


class BorrowedMachine:
    """A server that is installed afterwards as the worker that it is to be, or a virtual machine that is deleted."""

    def __init__(
        self,
        name: str,
        args: LentServerArgs | LentNodeArgs | LocalVmArgs,
        opts: pulumi.ResourceOptions | None,
        *,
        after: Sequence[pulumi.Resource],
        ipv6: str | None = None,
    ) -> None:
        own = pulumi.ResourceOptions(delete_before_replace=True, depends_on=list(after))
        machine = EphemeralMachine(name, args, pulumi.ResourceOptions.merge(opts, own))
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = pulumi.Output.from_input(ipv6 or "")
        self.ipv6 = ipv6
        self.console = pulumi.Output.from_input("")
