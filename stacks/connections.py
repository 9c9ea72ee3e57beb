"""From settings to what the providers need to connect: plain values, secrets marked where they are used.

In a rehearsal what is missing is stood in for by the word `rehearsal`: a preview contacts nobody.
"""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from components.boot.stream import Artifact
from stacks.sections.artifacts import S3Artifacts
from stacks.sections.base import REHEARSAL
from stacks.sections.dns import Cloudflare, Delegate, Lexicon, NoDns, Rfc2136, Route53
from stacks.sections.equinix_metal import EquinixMetal
from stacks.sections.redfish import LocalVm, Redfish, ServerBmc
from stacks.settings import Settings

_REHEARSAL_URL = "https://rehearsal.invalid/artifacts"
_REHEARSAL_ID = "00000000-0000-4000-8000-000000000000"


def auth_token(metal: EquinixMetal) -> str:
    """The Metal API token."""
    return _secret(metal.auth_token)


def project_id(settings: Settings, metal: EquinixMetal) -> str | None:
    """The project to use; None where one is to be created."""
    if settings.rehearsal and metal.project_id is None and metal.project_name is None:
        return _REHEARSAL_ID
    return metal.project_id


def organization_id(settings: Settings, metal: EquinixMetal) -> str | None:
    """The owner of the project to create; None where one is used."""
    if settings.rehearsal and metal.project_name is not None and metal.organization_id is None:
        return _REHEARSAL_ID
    return metal.organization_id


def provider_sections(settings: Settings, iso: Artifact | None = None) -> dict[str, dict[str, Any]]:
    """The configuration of our own provider: `metal` or `bmcs`, `libvirt`, `dns` and `artifacts`; secret as a whole.

    `iso` is CoreOS's live ISO, where a server boots that.
    """
    platform = settings.platform
    machines: dict[str, dict[str, Any]]
    if isinstance(platform, Redfish):
        machines = {"bmcs": {server.name: _bmc(settings, platform.bmc_of(server), iso) for server in platform.servers}}
        if isinstance(platform.bootstrap, LocalVm):
            machines["libvirt"] = {"uri": platform.bootstrap.uri}
    else:
        machines = {"metal": {"authToken": auth_token(platform)}}
    sections = {**machines, "dns": _dns(settings), "artifacts": _artifacts(settings)}
    return {name: section for name, section in sections.items() if section is not None}


def _bmc(settings: Settings, bmc: ServerBmc, iso: Artifact | None) -> dict[str, Any]:
    section = {
        "address": bmc.address,
        "username": bmc.username or REHEARSAL,
        "password": _secret(bmc.password),
        "ca": bmc.ca,
        "fingerprint": bmc.fingerprint,
        "systemId": bmc.system_id,
        "bootMethod": bmc.boot_method or "pxe",
        "bootMode": bmc.boot_mode,
        "bootImage": bmc.boot_image,
        "bootUrl": bmc.boot_url,
        "liveIso": {"url": iso.url, "sha256": iso.sha256} if iso and bmc.boot_method == "live-iso" else None,
        "secureBoot": "ignore" if "secure-boot" in settings.preflight.excused else None,
    }
    return {name: value for name, value in section.items() if value is not None}


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
        return {
            "service": "route53",
            "zoneId": dns.zone_id,
            "region": dns.region,
            "accessKeyId": dns.access_key_id or REHEARSAL,
            "secretAccessKey": _secret(dns.secret_access_key),
            "endpoint": dns.endpoint,
        }
    if isinstance(dns, Cloudflare):
        return {
            "service": "cloudflare",
            "authToken": _secret(dns.auth_token),
            "zoneId": dns.zone_id,
            "endpoint": dns.endpoint,
        }
    if isinstance(dns, Lexicon):
        options = {name: _secret(value) for name, value in dns.options.__pydantic_extra__.items()}
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
            "secret": _secret(tsig.secret if tsig else None),
        },
        "delegation": delegation,
    }


def boot_base_url(settings: Settings) -> str:
    """The URL below which firmware finds what is uploaded."""
    artifacts = settings.artifacts
    return artifacts.boot_base_url or artifacts.base_url or _REHEARSAL_URL


def _artifacts(settings: Settings) -> dict[str, Any]:
    artifacts = settings.artifacts
    if isinstance(artifacts, S3Artifacts):
        section = {
            "type": "s3",
            "bucket": artifacts.bucket,
            "prefix": artifacts.prefix,
            "region": artifacts.region,
            "endpoint": artifacts.endpoint,
            "accessKeyId": artifacts.access_key_id or REHEARSAL,
            "secretAccessKey": _secret(artifacts.secret_access_key),
            "baseUrl": artifacts.base_url,
            "bootBaseUrl": boot_base_url(settings),
            "caBundle": artifacts.ca_bundle,
        }
        return {name: value for name, value in section.items() if value is not None}
    base_url = artifacts.base_url or _REHEARSAL_URL
    section = {
        "type": "ssh",
        "host": artifacts.host or REHEARSAL,
        "port": artifacts.port,
        "user": artifacts.user or REHEARSAL,
        "hostKey": artifacts.host_key or REHEARSAL,
        "privateKey": _secret(artifacts.private_key),
        "directory": artifacts.directory,
        "matchbox": artifacts.matchbox,
        "baseUrl": base_url,
        "bootBaseUrl": boot_base_url(settings),
        "caBundle": artifacts.ca_bundle,
    }
    return {name: value for name, value in section.items() if value is not None}


def _secret(value: SecretStr | None) -> str:
    return value.get_secret_value() if value is not None else REHEARSAL
