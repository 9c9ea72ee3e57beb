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

from provider.fields import PLACEHOLDER, URL, Reader

SERVICES = ("rfc2136", "route53", "cloudflare", "lexicon")
PROPAGATION = ("service", "authoritative")
_COMMON = ("service", "zone", "propagation", "propagationTimeout")


@dataclass(frozen=True, kw_only=True)
class Propagation:
    """What is waited for after a change."""

    timeout: float
    """Seconds until a change must be visible."""
    everywhere: bool
    """Whether every authoritative server is asked, or only the service itself."""


@dataclass(frozen=True, kw_only=True)
class Delegation:
    """That somebody must set NS records in the parent zone by hand."""

    timeout: float
    """Seconds that are waited for them."""
    parent_servers: tuple[str, ...]
    """`address` or `address#port` of the parent's authoritative servers; empty: they are found by DNS."""


@dataclass(frozen=True, kw_only=True)
class Rfc2136Settings:
    """A server that takes RFC 2136 updates signed with TSIG."""

    server: str
    port: int
    tsig_name: str
    tsig_algorithm: str
    tsig_secret: str
    propagation: Propagation
    delegation: Delegation | None = None


@dataclass(frozen=True, kw_only=True)
class Route53Settings:
    """Hosted zones of an AWS account."""

    zone_id: str | None
    region: str
    access_key_id: str
    secret_access_key: str
    session_token: str | None
    endpoint: str | None
    propagation: Propagation


@dataclass(frozen=True, kw_only=True)
class LexiconSettings:
    """Any service of dns-lexicon, by its name there."""

    name: str
    options: Mapping[str, str]
    endpoint: str | None
    propagation: Propagation


DnsSettings = Rfc2136Settings | Route53Settings | LexiconSettings


def read(reader: Reader) -> DnsSettings:
    """The section. An unknown service is a problem, and the rest is then read as for the first one."""
    service = reader.text("service")
    if service not in ("", *SERVICES, PLACEHOLDER):
        reader.fail("service", "must be one of " + ", ".join(f"`{name}`" for name in SERVICES))
    reader.optional_text("zone")
    propagation = _propagation(reader)
    if service == "route53":
        return _route53(reader, propagation)
    if service == "cloudflare":
        return _cloudflare(reader, propagation)
    if service == "lexicon":
        return _lexicon(reader, propagation)
    return _rfc2136(reader, propagation)


def _propagation(reader: Reader) -> Propagation:
    where = reader.text("propagation", default="service")
    if where not in PROPAGATION:
        reader.fail("propagation", "must be `service` or `authoritative`")
    timeout = reader.number("propagationTimeout", default=60, minimum=1)
    return Propagation(timeout=timeout, everywhere=where == "authoritative")


def _rfc2136(reader: Reader, propagation: Propagation) -> Rfc2136Settings:
    reader.only(*_COMMON, "server", "port", "tsig", "delegation")
    tsig = reader.section("tsig")
    tsig.only("name", "algorithm", "secret")
    return Rfc2136Settings(
        server=reader.text("server"),
        port=int(reader.number("port", default=53, minimum=1, maximum=65535)),
        tsig_name=tsig.text("name", pattern=r"[^:\s]+", what="a key name"),
        tsig_algorithm=tsig.text("algorithm", pattern=r"hmac-[a-z0-9-]+", what="`hmac-sha256` or another HMAC"),
        tsig_secret=tsig.text("secret", pattern=r"[A-Za-z0-9+/]+={0,2}", what="base64"),
        propagation=propagation,
        delegation=None if reader.values.get("delegation") is None else _delegation(reader.section("delegation")),
    )


def _delegation(reader: Reader) -> Delegation:
    reader.only("timeout", "parentServers")
    servers = reader.texts("parentServers", required=False, pattern=r"[0-9a-fA-F:.]+(#\d+)?", what="address[#port]")
    return Delegation(timeout=reader.number("timeout", default=3600, minimum=1), parent_servers=servers)


def _route53(reader: Reader, propagation: Propagation) -> Route53Settings:
    reader.only(*_COMMON, "zoneId", "region", "accessKeyId", "secretAccessKey", "sessionToken", "endpoint")
    return Route53Settings(
        zone_id=reader.optional_text("zoneId", pattern=r"[A-Z0-9]+", what="the id of a hosted zone, `Z…`"),
        region=reader.text("region", default="us-east-1"),
        access_key_id=reader.text("accessKeyId"),
        secret_access_key=reader.text("secretAccessKey"),
        session_token=reader.optional_text("sessionToken"),
        endpoint=reader.optional_text("endpoint", pattern=URL, what="a URL"),
        propagation=propagation,
    )


def _cloudflare(reader: Reader, propagation: Propagation) -> LexiconSettings:
    reader.only(*_COMMON, "authToken", "zoneId", "endpoint")
    options = {"auth_token": reader.text("authToken")}
    zone_id = reader.optional_text("zoneId")
    return LexiconSettings(
        name="cloudflare",
        options=options if zone_id is None else {**options, "zone_id": zone_id},
        endpoint=reader.optional_text("endpoint", pattern=URL, what="a URL"),
        propagation=propagation,
    )


def _lexicon(reader: Reader, propagation: Propagation) -> LexiconSettings:
    reader.only(*_COMMON, "name", "options")
    options = reader.section("options", required=False)
    return LexiconSettings(
        name=reader.text("name", pattern=r"[a-z0-9]+", what="a service's name in dns-lexicon"),
        options={key: options.text(key) for key in options.values},
        endpoint=None,
        propagation=propagation,
    )
