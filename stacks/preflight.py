"""From settings to what is looked at before anything is ordered. Nothing here is secret, and nothing asks anybody."""

from __future__ import annotations

from components.boot.stream import PxeArtifacts
from components.install.install_config import CLUSTER_NETWORK, OVN_NETWORKS, SERVICE_NETWORK
from provider.types import BootFile, Plan
from stacks import connections
from stacks.orders import orders
from stacks.sections.api_address import KubeVip
from stacks.sections.base import REHEARSAL
from stacks.sections.equinix_metal import EquinixMetal
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
    install = settings.boot.install
    files = {"kernel": boot.kernel, "initramfs": boot.initramfs, "rootfs": boot.rootfs}
    if install is not None and install.image == "stream" and boot.disk is not None:
        files["disk"] = boot.disk
    return tuple(BootFile(name=name, url=file.url, sha256=file.sha256) for name, file in files.items())
