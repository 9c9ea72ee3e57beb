"""From settings to the platform that the machines come from."""

from __future__ import annotations

import pulumi

from components.boot.network import StaticNetwork
from components.machines.contract import Platform
from components.machines.equinix_metal import EquinixMetal, EquinixMetalArgs
from components.machines.redfish import Redfish, RedfishArgs, RedfishServer
from stacks import connections
from stacks.names import Names
from stacks.sections.redfish import Lend, Server
from stacks.sections.redfish import Redfish as RedfishSettings
from stacks.settings import Settings


def ignition_platform(settings: Settings) -> str:
    """Ignition's platform id of the stack's machines."""
    return (Redfish if isinstance(settings.platform, RedfishSettings) else EquinixMetal).ignition_platform


def platform(settings: Settings, ssh_public_key: pulumi.Input[str], opts: pulumi.ResourceOptions) -> Platform:
    """Declare the platform; `opts` hand on our own provider."""
    if isinstance(settings.platform, RedfishSettings):
        return Redfish("platform", RedfishArgs(servers=_servers(settings, settings.platform)), opts)
    metal = settings.platform
    return EquinixMetal(
        "platform",
        EquinixMetalArgs(
            stack=pulumi.get_stack(),
            cluster=settings.domain,
            auth_token=connections.auth_token(metal),
            project_id=connections.project_id(settings, metal),
            project_name=metal.project_name,
            organization_id=metal.organization_id,
            metro=metal.metro,
            facility=metal.facility,
            plans={
                "bootstrap": metal.bootstrap_plan,
                "control-plane": metal.control_plane_plan,
                "worker": metal.worker_plan,
            },
            ssh_public_key=ssh_public_key,
        ),
    )


def lent(settings: Settings) -> str | None:
    """The short host name of the machine whose server is the bootstrap machine first; None where none is lent."""
    section = settings.platform
    if not isinstance(section, RedfishSettings) or not isinstance(section.bootstrap, Lend):
        return None
    return f"{settings.cluster_name}-{section.bootstrap.server}"


def network(settings: Settings, hostname: str) -> StaticNetwork | None:
    """What kernel arguments say of a machine's network (the bootstrap machine included); None where DHCP tells it."""
    section = settings.platform
    if not isinstance(section, RedfishSettings) or section.network_boot == "dhcp":
        return None
    assert section.gateway is not None and section.prefix is not None and section.interface is not None
    return StaticNetwork(
        address=_servers(settings, section)[hostname].address,
        gateway=section.gateway,
        prefix=section.prefix,
        hostname=settings.full(hostname),
        interface=section.interface,
        nameservers=section.nameservers,
    )


def kernel_arguments(settings: Settings, hostname: str) -> tuple[str, ...]:
    """What an installed machine has on its kernel's command line besides consoles, its network included."""
    static = network(settings, hostname)
    own = settings.kernel_arguments(hostname.removeprefix(f"{settings.cluster_name}-"))
    return (*own, *(static.arguments if static else ()))


def _servers(settings: Settings, section: RedfishSettings) -> dict[str, RedfishServer]:
    servers = {f"{settings.cluster_name}-{server.name}": _server(server) for server in section.servers}
    borrowed = lent(settings)
    return servers if borrowed is None else {**servers, Names.of(settings).bootstrap: servers[borrowed]}


def _server(server: Server) -> RedfishServer:
    return RedfishServer(
        name=server.name,
        mac=server.mac,
        address=server.address,
        private_address=server.private_address or server.address,
        accept="wipe" if server.consent == "wipe" else "empty",
    )
