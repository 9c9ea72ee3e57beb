"""The provider's `dns` section: which service keeps the zones, and how it is reached.

    {"service": "rfc2136", "server", "port"?, "tsig": {"name", "algorithm", "secret"}, "delegation"?: {...}}
    {"service": "route53", "zoneId"?, "region"?, "accessKeyId", "secretAccessKey", "sessionToken"?, "endpoint"?}
    {"service": "cloudflare", "authToken", "zoneId"?, "endpoint"?}
    {"service": "lexicon", "name", "options"}

all with "zone"?, "propagation"? and "propagationTimeout"?. Only the form is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from metal_ipi.provider.forms import PLACEHOLDER, Port, Seconds, Url, form
from metal_ipi.provider.given import ListOf, Local, MapOf, Secret, default
from metal_ipi.provider.inputs import Inputs, Problem

SERVICES = ("rfc2136", "route53", "cloudflare", "lexicon")


@dataclass(frozen=True, kw_only=True)
class Propagation:
    """What is waited for after a change."""

    timeout: float
    """Seconds until a change must be visible."""
    everywhere: bool
    """Whether every authoritative server is asked, or only the service itself."""


class Delegation(Inputs):
    """That somebody must set NS records in the parent zone by hand."""

    timeout: Seconds = 3600
    """Seconds that are waited for them."""
    parent_servers: ListOf[Annotated[str, form(r"[0-9a-fA-F:.]+(#\d+)?", "address[#port]")]] = default(())
    """`address` or `address#port` of the parent's authoritative servers; empty: they are found by DNS."""


class _Service(Inputs):
    """What all services have."""

    service: str
    """Its name."""
    zone: str | None = None
    """The zone that it keeps."""
    views: Annotated[str, form("service|authoritative", "`service` or `authoritative`"), Field(alias="propagation")] = (
        "service"
    )
    """Who is asked after a change: the service itself, or every authoritative server."""
    propagation_timeout: Seconds = 60
    """Seconds until a change must be visible."""

    @property
    def propagation(self) -> Propagation:
        """What is waited for after a change."""
        return Propagation(timeout=self.propagation_timeout, everywhere=self.views == "authoritative")


class Tsig(Inputs):
    """The key that signs updates."""

    name: Annotated[str, form(r"[^:\s]+", "a key name")]
    """Its name."""
    algorithm: Annotated[str, form(r"hmac-[a-z0-9-]+", "`hmac-sha256` or another HMAC")]
    """Its algorithm."""
    secret: Secret[Annotated[str, form(r"[A-Za-z0-9+/]+={0,2}", "base64")]]
    """The key, in base64."""


class Rfc2136Settings(_Service):
    """A server that takes RFC 2136 updates signed with TSIG."""

    server: str
    """Its name or address."""
    port: Port = 53
    """Its port."""
    tsig: Tsig
    """The key."""
    delegation: Delegation | None = None
    """None: the zone is delegated already, or need not be."""


class Route53Settings(_Service):
    """Hosted zones of an AWS account."""

    zone_id: Annotated[str, form(r"[A-Z0-9]+", "the id of a hosted zone, `Z…`")] | None = None
    """The hosted zone; None: it is found by its name."""
    region: str = "us-east-1"
    """The region whose API is asked."""
    access_key_id: str
    """Id of the access key."""
    secret_access_key: Secret[str]
    """Its secret."""
    session_token: Secret[str] | None = None
    """Of temporary credentials."""
    endpoint: Url | None = None
    """Another endpoint than that of AWS."""


class LexiconSettings(_Service):
    """Any service of dns-lexicon, by its name there."""

    name: Annotated[str, form(r"[a-z0-9]+", "a service's name in dns-lexicon")]
    """Its name."""
    options: MapOf[Secret[str]] = default({})
    """Its own options. Which of them are secret, only that service knows."""
    endpoint: Local[str | None] = None
    """Another endpoint than the service's."""


class _CloudflareSettings(_Service):
    """Zones at Cloudflare."""

    auth_token: Secret[str]
    """An API token."""
    zone_id: str | None = None
    """The zone; None: it is found by its name."""
    endpoint: Url | None = None
    """Another endpoint than the service's."""

    def lexicon(self) -> LexiconSettings:
        """The same, as dns-lexicon takes it."""
        options = {"auth_token": self.auth_token, **({} if self.zone_id is None else {"zone_id": self.zone_id})}
        return LexiconSettings(
            service=self.service,
            zone=self.zone,
            views=self.views,
            propagation_timeout=self.propagation_timeout,
            name="cloudflare",
            options=options,
            endpoint=self.endpoint,
        )


DnsSettings = Rfc2136Settings | Route53Settings | LexiconSettings
_KINDS: Mapping[str, type[_Service]] = {
    "rfc2136": Rfc2136Settings,
    "route53": Route53Settings,
    "cloudflare": _CloudflareSettings,
    "lexicon": LexiconSettings,
    PLACEHOLDER: Rfc2136Settings,
}


def read(values: Mapping[str, Any]) -> tuple[DnsSettings | None, list[Problem]]:
    """The section, or all its problems. With a service that is not known, the rest is read as for the first one."""
    service = values.get("service")
    kind = _KINDS.get(service) if isinstance(service, str) else None
    problems = (kind or Rfc2136Settings).problems(values, "dns")
    if kind is None and isinstance(service, str) and service:
        known = ", ".join(f"`{name}`" for name in SERVICES)
        problems.insert(0, Problem(path="dns.service", reason=f"must be one of {known}"))
    if kind is None or problems:
        return None, problems
    found = kind.read(values)
    if isinstance(found, _CloudflareSettings):
        return found.lexicon(), []
    assert isinstance(found, DnsSettings)
    return found, []
