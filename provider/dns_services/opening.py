"""Chooses the service of a zone. Each is imported when it is used: the plugin starts without their libraries."""

from __future__ import annotations

from metal_ipi.provider.dns_services import DnsService
from metal_ipi.provider.dns_settings import DnsSettings, Rfc2136Settings, Route53Settings


def open_service(settings: DnsSettings, zone: str) -> DnsService:
    """The service of a zone; does not connect yet."""
    if isinstance(settings, Rfc2136Settings):
        from metal_ipi.provider.dns_services.rfc2136 import Rfc2136Service

        return Rfc2136Service(settings, zone)
    if isinstance(settings, Route53Settings):
        from metal_ipi.provider.dns_services.route53 import Route53Service

        return Route53Service(settings, zone)
    from metal_ipi.provider.dns_services.lexicon import LexiconService

    return LexiconService(settings, zone)
