"""What the platforms with listed servers share: a server, and the bootstrap machine.

The bootstrap machine is a server that is lent, or a virtual machine; it runs from memory.
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
    """One server. Its BMC or Ironic node is part of the provider's configuration."""

    name: str
    """Its name in the provider's configuration."""
    mac: str
    """The MAC address of the interface that boots, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    private_address: str
    """The IPv4 address within the facility; may be the same."""
    ipv6_address: str | None
    """Its additional IPv6 address. None: it has none."""
    accept: Literal["empty", "wipe"]
    """`wipe`: a system that runs on it may be deleted. `empty`: it is refused if something runs on it."""


@dataclass(frozen=True, kw_only=True)
class VirtualMachine:
    """A virtual bootstrap machine, if no server is lent. Its libvirt is part of the provider's configuration."""

    cluster: str
    """The cluster's domain, with which the virtual machine is marked."""
    mac: str
    """The MAC address of its network card, in lower case with colons."""
    address: str
    """The IPv4 address it is reached at."""
    bridge: str
    """The bridge of its network card."""
    memory_mib: int
    """Its memory in MiB."""
    cpus: int
    """The number of its virtual CPUs."""
    boot_image: str | None
    """The path of an iPXE image on libvirt's host. None: the firmware boots by DHCP."""


def local_vm(args: MachineArgs, vm: VirtualMachine) -> LocalVmArgs:
    """The inputs of our provider for the virtual machine."""
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
    """The bootstrap machine: a server that is installed as a worker afterwards, or a virtual machine that is
    deleted."""

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
