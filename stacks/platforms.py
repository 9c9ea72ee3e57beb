"""From settings to the platform that the machines come from."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi

from components.boot.network import StaticNetwork
from components.machines.contract import Platform
from components.machines.equinix_metal import EquinixMetal, EquinixMetalArgs, VlanSpec
from components.machines.redfish import Redfish, RedfishArgs, RedfishServer, VirtualMachine
from provider.types import ClusterKeys
from stacks import connections, orders
from stacks.names import Names
from stacks.sections.equinix_metal import FIRST_CONTROL_PLANE, FIRST_WORKER, Network
from stacks.sections.equinix_metal import EquinixMetal as MetalSettings
from stacks.sections.redfish import Lend, LocalVm, NoBootstrap, Server
from stacks.sections.redfish import Redfish as RedfishSettings
from stacks.settings import Settings


def ignition_platform(settings: Settings) -> str:
    """Ignition's platform id of the stack's machines."""
    return (Redfish if isinstance(settings.platform, RedfishSettings) else EquinixMetal).ignition_platform


def platform(
    settings: Settings, keys: ClusterKeys, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions
) -> Platform:
    """Declare the platform, which orders nothing before `after`; `opts` hand on our own provider."""
    section = settings.platform
    if isinstance(section, RedfishSettings):
        args = RedfishArgs(
            servers=_servers(settings, section), bootstrap_vm=_bootstrap_vm(settings, section), after=after
        )
        return Redfish("platform", args, opts)
    return EquinixMetal("platform", _metal(settings, section, keys, after), opts)


def _metal(
    settings: Settings, metal: MetalSettings, keys: ClusterKeys, after: Sequence[pulumi.Resource]
) -> EquinixMetalArgs:
    return EquinixMetalArgs(
        stack=pulumi.get_stack(),
        cluster=settings.domain,
        run=keys.id,
        auth_token=connections.auth_token(metal),
        project_id=connections.project_id(settings, metal),
        project_name=metal.project_name,
        organization_id=connections.organization_id(settings, metal),
        metro=metal.metro,
        facilities=metal.facilities,
        orders={order.role: order for order in orders.machines(settings, metal)},
        addresses=orders.addresses(settings),
        lifetime_hours=metal.lifetime_hours,
        custom_data=json.dumps(metal.custom_data, sort_keys=True) if metal.custom_data else None,
        tags=metal.tags,
        networks=tuple(map(_vlan, metal.networks)),
        bond_interfaces=metal.bond_interfaces,
        ssh_public_key=keys.public_key,
        after=after,
    )


def _vlan(section: Network) -> VlanSpec:
    return VlanSpec(
        order=orders.network(section),
        text=section.description,
        roles=section.roles,
        first={"control-plane": FIRST_CONTROL_PLANE, "worker": FIRST_WORKER},
    )


def lent(settings: Settings) -> str | None:
    """The short host name of the machine whose server is the bootstrap machine first; None where none is lent."""
    section = settings.platform
    if not isinstance(section, RedfishSettings) or not isinstance(section.bootstrap, Lend):
        return None
    return f"{settings.cluster_name}-{section.bootstrap.server}"


def in_place(settings: Settings) -> bool:
    """Whether the only machine bootstraps the cluster itself, in the live system that installs it."""
    section = settings.platform
    return isinstance(section, RedfishSettings) and isinstance(section.bootstrap, NoBootstrap)


def machine_networks(settings: Settings) -> tuple[str, ...]:
    """CIDRs of the machines' networks, as far as they are known before there are machines."""
    section = settings.platform
    known = section.network if isinstance(section, RedfishSettings) else None
    return () if known is None else (str(known),)


def network(settings: Settings, hostname: str) -> StaticNetwork | None:
    """A machine's network (the bootstrap machine's too); None where DHCP tells it."""
    section = settings.platform
    if not isinstance(section, RedfishSettings) or section.network_boot == "dhcp":
        return None
    vm = section.bootstrap if isinstance(section.bootstrap, LocalVm) else None
    if vm is not None and hostname == Names.of(settings).bootstrap:
        address, interface = vm.address, vm.interface
    else:
        address, interface = _servers(settings, section)[hostname].address, section.interface
    assert section.gateway is not None and section.prefix is not None and interface is not None
    return StaticNetwork(
        address=address,
        gateway=section.gateway,
        prefix=section.prefix,
        hostname=settings.full(hostname),
        interface=interface,
        nameservers=section.nameservers,
    )


def kernel_arguments(settings: Settings, hostname: str) -> tuple[str, ...]:
    """What an installed machine has on its kernel's command line besides consoles."""
    return settings.kernel_arguments(hostname.removeprefix(f"{settings.cluster_name}-"))


def _servers(settings: Settings, section: RedfishSettings) -> dict[str, RedfishServer]:
    servers = {f"{settings.cluster_name}-{server.name}": _server(server) for server in section.servers}
    borrowed = lent(settings)
    return servers if borrowed is None else {**servers, Names.of(settings).bootstrap: servers[borrowed]}


def _bootstrap_vm(settings: Settings, section: RedfishSettings) -> VirtualMachine | None:
    if not isinstance(section.bootstrap, LocalVm):
        return None
    vm = section.bootstrap
    return VirtualMachine(
        cluster=settings.domain,
        mac=vm.mac,
        address=vm.address,
        bridge=vm.bridge,
        memory_mib=vm.memory,
        cpus=vm.cpus,
        boot_image=vm.boot_image,
    )


def _server(server: Server) -> RedfishServer:
    return RedfishServer(
        name=server.name,
        bmc=server.bmc.address,
        mac=server.mac,
        address=server.address,
        private_address=server.private_address or server.address,
        accept="wipe" if server.consent == "wipe" else "empty",
    )
