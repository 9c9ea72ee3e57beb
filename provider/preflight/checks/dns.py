"""Preflight check: can the DNS zones be reached and written? Each DNS service has its own way to test that without
leaving a change."""

from __future__ import annotations

import secrets

from metal_ipi.provider.dns_services.opening import open_service
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "dns"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per zone."""
    return [await _zone(subject, zone) for zone in subject.plan.zones]


async def _zone(subject: Subject, zone: str) -> Finding:
    domain = subject.plan.domain
    below = domain if domain == zone or domain.endswith(f".{zone}") else zone
    service = open_service(subject.settings.need_dns(), zone)
    try:
        await service.prove_writable(f"_metal-ipi-preflight-{secrets.token_hex(6)}.{below}")
    except RemoteError as failure:
        return error(
            f"zone {zone} cannot be written: {failure}",
            "correct dns.* (server, zone, credentials), or the rights of the credentials",
        )
    return ok(f"{service.where} accepts changes of zone {zone}")
