"""Can the zones be reached and written? How that is found out without a trace is each service's own matter."""

from __future__ import annotations

import secrets

from provider.dns_services.opening import open_service
from provider.errors import RemoteError
from provider.preflight.findings import Finding
from provider.preflight.subject import Subject

NAME = "dns"


async def check(subject: Subject) -> list[Finding]:
    """A finding per zone."""
    return [await _zone(subject, zone) for zone in subject.plan.zones]


async def _zone(subject: Subject, zone: str) -> Finding:
    domain = subject.plan.domain
    below = domain if domain == zone or domain.endswith(f".{zone}") else zone
    service = open_service(subject.settings.need_dns(), zone)
    try:
        await service.prove_writable(f"_metal-ipi-preflight-{secrets.token_hex(6)}.{below}")
    except RemoteError as error:
        return Finding(
            check=NAME,
            level="error",
            what=f"zone {zone} cannot be written: {error}",
            remedy="correct dns.* (server, zone, credentials), or what the service lets them do",
        )
    return Finding(check=NAME, level="ok", what=f"{service.where} takes changes of zone {zone}")
