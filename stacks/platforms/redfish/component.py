"""From settings to the component that claims a rack's servers."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.machines.contract import Platform
from components.machines.redfish import Redfish, RedfishArgs, RedfishServer, VirtualMachine
from stacks.model import Settings
from stacks.names import Names
from stacks.platforms.redfish import settings as sections


def component(
    settings: Settings,
    section: sections.Redfish,
    lent: str | None,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Platform:
    """Declare the platform; `lent` is the short host name of the worker whose server is lent."""
    servers = {f"{settings.cluster_name}-{each.name}": _server(each) for each in section.servers}
    if lent is not None:
        servers = {**servers, Names.of(settings).bootstrap: servers[lent]}
    args = RedfishArgs(servers=servers, bootstrap_vm=_bootstrap_vm(settings, section), after=after)
    return Redfish("platform", args, opts)


def _bootstrap_vm(settings: Settings, section: sections.Redfish) -> VirtualMachine | None:
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


def _server(server: sections.Server) -> RedfishServer:
    return RedfishServer(
        name=server.name,
        bmc=server.bmc.address,
        mac=server.mac,
        address=server.address,
        private_address=server.private_address or server.address,
        accept=server.accept,
    )
