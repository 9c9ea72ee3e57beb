"""The bootstrap machine where no server is lent: a virtual one, on any platform whose servers are listed."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.components.boot import site
from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.provider.types import LocalVmArgs


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
