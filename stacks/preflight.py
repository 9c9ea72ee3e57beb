"""From settings to what is looked at before anything is ordered. Nothing here is secret, and nothing asks anybody."""

from __future__ import annotations

from components.boot.stream import PxeArtifacts
from components.install.install_config import CLUSTER_NETWORK, OVN_NETWORKS, SERVICE_NETWORK
from provider.types import LIVE_ISO_FILE, BootFile, Plan, Server
from stacks import connections, mirror
from stacks.orders import orders
from stacks.sections.api_address import KubeVip
from stacks.sections.base import REHEARSAL
from stacks.sections.equinix_metal import EquinixMetal
from stacks.sections.redfish import Lend, LocalVm, NoBootstrap, Redfish
from stacks.sections.service_addresses import MetalLbBgp, MetalLbL2
from stacks.settings import Settings


def plan(settings: Settings, boot: PxeArtifacts, stack: str) -> Plan:
    """What is to be checked of a stack."""
    metal = settings.platform if isinstance(settings.platform, EquinixMetal) else None
    api = settings.api_address
    announced = api.address if isinstance(api, KubeVip) and api.mode == "bgp" else None
    return Plan(
        stack=stack,
        domain=settings.domain,
        architecture=settings.boot.architecture,
        project_id=connections.project_id(settings, metal) if metal else None,
        project_name=metal.project_name if metal else None,
        organization_id=connections.organization_id(settings, metal) if metal else None,
        lifetime_hours=metal.lifetime_hours if metal else None,
        orders=orders(settings),
        servers=_servers(settings),
        networks={
            "the pods' network": CLUSTER_NETWORK,
            "the services' network": SERVICE_NETWORK,
            **OVN_NETWORKS,
            **_pools(settings),
        },
        api_address=announced if metal else None,
        zones=tuple(zone for zone in (settings.zone, *settings.dns.reverse_zones) if zone is not None),
        release=boot.release if boot.release != REHEARSAL else None,
        stream=boot.stream if boot.release != REHEARSAL else None,
        boot=_boot(settings, boot),
        hashed_mib=settings.preflight.hashed_mib,
        installer=settings.install.installer,
        version=settings.openshift_version,
        fips=settings.install.fips,
        excused=settings.preflight.excused,
    )


def _servers(settings: Settings) -> tuple[Server, ...]:
    """The machines that are there already, and the virtual one."""
    platform = settings.platform
    if not isinstance(platform, Redfish):
        return ()
    bootstrap = platform.bootstrap
    lent = bootstrap.server if isinstance(bootstrap, Lend) else None
    in_place = isinstance(bootstrap, NoBootstrap)
    servers = tuple(
        Server(name=each.name, role=each.role, live=in_place or each.name == lent, bmc=each.name)
        for each in platform.servers
    )
    if not isinstance(bootstrap, LocalVm):
        return servers
    virtual = Server(name="bootstrap", role="bootstrap", live=True, memory_mib=bootstrap.memory, cpus=bootstrap.cpus)
    return (*servers, virtual)


def _pools(settings: Settings) -> dict[str, str]:
    """The networks that service addresses are of. Ranges from address to address are settings' own to compare."""
    section = settings.service_addresses
    pools = section.pools if isinstance(section, MetalLbBgp | MetalLbL2) else ()
    return {
        f"service addresses {pool.name}{f' {number}' if number else ''}": network
        for pool in pools
        for number, network in enumerate(pool.addresses)
        if "/" in network
    }


def _boot(settings: Settings, boot: PxeArtifacts) -> tuple[BootFile, ...]:
    files = [
        BootFile(name=name, url=file.url, sha256=file.sha256, mirrored=mirror.place(settings, file))
        for name, file in mirror.files(settings, boot).items()
    ]
    platform = settings.platform
    if isinstance(platform, Redfish) and platform.by_live_iso and boot.iso is not None:
        files.append(BootFile(name=LIVE_ISO_FILE, url=boot.iso.url, sha256=boot.iso.sha256))
    return tuple(files)
