"""The provider's `dns` section: the service that keeps the zones, and how it is reached.

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
    """NS records that must be set by hand in the parent zone."""

    timeout: Seconds = 3600
    """Seconds to wait for them."""
    parent_servers: ListOf[Annotated[str, form(r"[0-9a-fA-F:.]+(#\d+)?", "address[#port]")]] = default(())
    """`address` or `address#port` of the parent's authoritative servers. Empty: found by DNS."""


class _Service(Inputs):
    """What all services share."""

    service: str
    """The service's name."""
    zone: str | None = None
    """The zone that the service keeps."""
    views: Annotated[str, form("service|authoritative", "`service` or `authoritative`"), Field(alias="propagation")] = (
        "service"
    )
    """Where a change must be visible: `service` (only the service itself) or `authoritative` (every authoritative
    server)."""
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
    """A server with RFC 2136 updates, signed with TSIG."""

    server: str
    """Its name or address."""
    port: Port = 53
    """Its port."""
    tsig: Tsig
    """The key that signs updates."""
    delegation: Delegation | None = None
    """Set if the zone must still be delegated by hand."""


class Route53Settings(_Service):
    """Hosted zones of an AWS account."""

    zone_id: Annotated[str, form(r"[A-Z0-9]+", "the id of a hosted zone, `Z…`")] | None = None
    """The hosted zone's id. None: it is found by its name."""
    region: str = "us-east-1"
    """The region of the API."""
    access_key_id: str
    """Id of the access key."""
    secret_access_key: Secret[str]
    """The access key's secret."""
    session_token: Secret[str] | None = None
    """The session token of temporary credentials."""
    endpoint: Url | None = None
    """An endpoint other than AWS's."""


class LexiconSettings(_Service):
    """Any service of dns-lexicon, with dns-lexicon's name."""

    name: Annotated[str, form(r"[a-z0-9]+", "a service's name in dns-lexicon")]
    """The service's name in dns-lexicon."""
    options: MapOf[Secret[str]] = default({})
    """The service's own options. Only the service knows which of them are secret, so all are."""
    endpoint: Local[str | None] = None
    """An endpoint other than the service's own."""


class _CloudflareSettings(_Service):
    """Zones at Cloudflare."""

    auth_token: Secret[str]
    """An API token."""
    zone_id: str | None = None
    """The zone's id. None: it is found by its name."""
    endpoint: Url | None = None
    """An endpoint other than Cloudflare's."""

    def lexicon(self) -> LexiconSettings:
        """The same settings for dns-lexicon."""
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
    """Parse the section; returns it, or all its problems. With an unknown service, the other fields are checked as for
    rfc2136."""
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
