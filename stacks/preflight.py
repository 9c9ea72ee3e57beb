"""From settings to the plan of what is checked before anything is ordered. The plan has no secrets; nothing is
contacted here."""

from __future__ import annotations

from metal_ipi.components.boot.stream import PxeArtifacts
from metal_ipi.provider.types import BootFile, MirrorSet, Plan
from metal_ipi.stacks import mirror
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.service_addresses import MetalLbBgp, MetalLbL2


def plan(settings: Settings, boot: PxeArtifacts, stack: str) -> Plan:
    """The checks for a stack."""
    checked = Plan(
        stack=stack,
        domain=settings.domain,
        architecture=settings.boot.architecture,
        networks={
            **settings.install_config.networking.inside,
            **_pools(settings),
        },
        zones=tuple(zone for zone in (settings.zone, *settings.dns.reverse_zones) if zone is not None),
        release=boot.release if boot.release != REHEARSAL else None,
        stream=boot.stream if boot.release != REHEARSAL else None,
        boot=_boot(settings, boot),
        hashed_mib=settings.preflight.hashed_mib,
        installer=settings.install.installer,
        version=settings.openshift_version,
        fips=settings.install.fips,
        images=settings.asks_registries,
        release_image=settings.install.release_image,
        mirrors=tuple(
            MirrorSet(source=each.source, mirrors=each.mirrors)
            for each in (settings.install_config.image_digest_sources if settings.asks_registries else ())
        ),
        excused=settings.preflight.excused,
        overrides={str(name): why for name, why in settings.preflight.overrides.items()},
    )
    checked = facility(settings).checked(checked, boot)
    # Left to the cluster's own stack, which has done it before.
    own = {"installer": None, "images": False, "api_address": None}
    return checked if settings.pool is None else checked.model_copy(update=own)


def _pools(settings: Settings) -> dict[str, str]:
    """The networks of service addresses. Ranges from address to address are compared by the settings' own
    validation."""
    section = settings.service_addresses
    pools = section.pools if isinstance(section, MetalLbBgp | MetalLbL2) else ()
    return {
        f"service addresses {pool.name}{f' {number}' if number else ''}": network
        for pool in pools
        for number, network in enumerate(pool.addresses)
        if "/" in network
    }


def _boot(settings: Settings, boot: PxeArtifacts) -> tuple[BootFile, ...]:
    return tuple(
        BootFile(name=name, url=file.url, sha256=file.sha256, mirrored=mirror.place(settings, file))
        for name, file in mirror.files(settings, boot).items()
    )
