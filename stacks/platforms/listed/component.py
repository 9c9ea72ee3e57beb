"""From settings to the arguments that the components of these platforms share."""

from __future__ import annotations

from typing import Any

from metal_ipi.components.machines.listed import ListedServer, VirtualMachine
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.listed.settings import ListedServers, Server


def bootstrap_vm(settings: Settings, section: ListedServers[Any]) -> VirtualMachine | None:
    """The virtual bootstrap machine; None if there is none."""
    vm = section.local_vm
    if vm is None:
        return None
    return VirtualMachine(
        cluster=settings.domain,
        mac=vm.mac,
        address=vm.address,
        bridge=vm.bridge,
        memory_mib=vm.memory,
        cpus=vm.cpus,
        boot_image=vm.boot_image,
    )


def listed_server(server: Server) -> ListedServer:
    """One server."""
    return ListedServer(
        name=server.name,
        mac=server.mac,
        address=server.address,
        private_address=server.private_address or server.address,
        ipv6_address=server.ipv6_address,
        accept=server.accept,
    )
