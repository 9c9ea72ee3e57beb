"""From settings to the configuration of the providers: plain values; secrets are marked where they are used.

In a rehearsal the word `rehearsal` replaces missing values, because a preview contacts nothing.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.components.boot.stream import Artifact
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.sections.artifacts import S3Artifacts
from metal_ipi.stacks.sections.base import REHEARSAL, revealed
from metal_ipi.stacks.sections.dns import Cloudflare, Delegate, Lexicon, NoDns, Rfc2136, Route53
from metal_ipi.stacks.settings import OKD_PULL_SECRET

_REHEARSAL_URL = "https://rehearsal.invalid/artifacts"


def provider_sections(settings: Settings, iso: Artifact | None = None) -> dict[str, dict[str, Any]]:
    """The configuration of our own provider: the platform's sections, `dns`, `artifacts` and `registries`; all of it is
    secret.

    `iso` is CoreOS's live ISO, for servers that boot it.
    """
    machines = facility(settings).provider_sections(iso)
    sections = {
        **machines,
        "dns": _dns(settings),
        "artifacts": _artifacts(settings),
        "registries": _registries(settings) if settings.asks_registries else None,
    }
    return {name: section for name, section in sections.items() if section is not None}


def _dns(settings: Settings) -> dict[str, Any] | None:
    dns = settings.dns
    if isinstance(dns, NoDns):
        return None
    section = {
        "zone": settings.zone,
        "propagation": dns.propagation,
        "propagationTimeout": dns.propagation_timeout,
        **_dns_service(dns),
    }
    return {name: value for name, value in section.items() if value is not None}


def _dns_service(dns: Rfc2136 | Route53 | Cloudflare | Lexicon | Delegate) -> dict[str, Any]:
    if isinstance(dns, Route53):
        keys = {"accessKeyId": dns.access_key_id or REHEARSAL, "secretAccessKey": revealed(dns.secret_access_key)}
        return {"service": "route53", "zoneId": dns.zone_id, "region": dns.region, "endpoint": dns.endpoint, **keys}
    if isinstance(dns, Cloudflare):
        token = revealed(dns.auth_token)
        return {"service": "cloudflare", "authToken": token, "zoneId": dns.zone_id, "endpoint": dns.endpoint}
    if isinstance(dns, Lexicon):
        options = {name: revealed(value) for name, value in dns.options.__pydantic_extra__.items()}
        return {"service": "lexicon", "name": dns.service, "options": options}
    tsig = dns.tsig
    delegation = None
    if isinstance(dns, Delegate):
        delegation = {"timeout": dns.delegation_timeout, "parentServers": list(dns.parent_servers)}
    return {
        "service": "rfc2136",
        "server": dns.server or REHEARSAL,
        "port": dns.port,
        "tsig": {
            "name": tsig.name if tsig else REHEARSAL,
            "algorithm": tsig.algorithm if tsig else "hmac-sha256",
            "secret": revealed(tsig.secret if tsig else None),
        },
        "delegation": delegation,
    }


def _registries(settings: Settings) -> dict[str, Any]:
    pull_secret = settings.install.pull_secret
    bundle = settings.install_config.additional_trust_bundle
    section = {"pullSecret": pull_secret.get_secret_value() if pull_secret else OKD_PULL_SECRET, "ca": bundle}
    return {name: value for name, value in section.items() if value is not None}


def boot_base_url(settings: Settings) -> str:
    """The URL from which firmware fetches uploaded files."""
    artifacts = settings.artifacts
    return artifacts.boot_base_url or artifacts.base_url or _REHEARSAL_URL


def _artifacts(settings: Settings) -> dict[str, Any]:
    """The section `artifacts`. In a rehearsal the word `rehearsal` replaces missing values."""
    artifacts = settings.artifacts
    if isinstance(artifacts, S3Artifacts):
        needed = {"accessKeyId": REHEARSAL, "secretAccessKey": revealed(artifacts.secret_access_key)}
    else:
        needed = dict.fromkeys(("host", "user", "hostKey"), REHEARSAL)
        needed |= {"privateKey": revealed(artifacts.private_key), "baseUrl": _REHEARSAL_URL}
    given = artifacts.model_dump(
        by_alias=True, exclude_none=True, exclude={"mirror", "private_key", "secret_access_key"}
    )
    return {**needed, **given, "bootBaseUrl": boot_base_url(settings)}
