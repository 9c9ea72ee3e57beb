"""Where the cluster's DNS names are kept."""

from __future__ import annotations

import base64
import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel

from metal_ipi.provider import lexicon_services
from metal_ipi.stacks.problems import nearest
from metal_ipi.stacks.sections.base import LONGEST_WAIT, REHEARSAL, Section, wrong
from metal_ipi.stacks.sections.forms import Endpoint, KeyId, KeyName, Region, Zone

_REVERSE = re.compile(r"([a-z0-9/-]+\.)+(in-addr|ip6)\.arpa")
_LABELS_OF_BITS = {4: 8, 6: 4}


def _address(value: str | None) -> str | None:
    if value is not None:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise wrong(
                "it is not an IP address", "give the address of the zone's primary server, not its name"
            ) from None
    return value


def _reverse_zones(values: tuple[str, ...]) -> tuple[str, ...]:
    zones = tuple(reverse_zone(value) for value in values)
    if len(set(zones)) < len(zones):
        raise wrong("a zone is named twice", "name each reverse zone once")
    return zones


def reverse_zone(value: str) -> str:
    """The name of a reverse zone, from its name or from a network whose prefix ends at a label of the reverse name."""
    if _REVERSE.fullmatch(value):
        return value
    try:
        network = ipaddress.ip_network(value)
    except ValueError:
        raise wrong(
            f"'{value}' is neither a reverse zone nor a network",
            "give a name such as 100.51.198.in-addr.arpa, or a network such as 198.51.100.0/24",
        ) from None
    step = _LABELS_OF_BITS[network.version]
    if network.prefixlen % step or not network.prefixlen:
        raise wrong(
            f"'{value}' does not end at the end of a label of a reverse zone",
            "give the zone's name, or a network with a prefix of 8, 16 or 24 (IPv6: a multiple of 4)",
        )
    labels = network.network_address.reverse_pointer.split(".")
    return ".".join(labels[(network.max_prefixlen - network.prefixlen) // step :])


ReverseZones = Annotated[tuple[str, ...], AfterValidator(_reverse_zones)]


class Tsig(Section):
    """A key that signs DNS updates (RFC 8945)."""

    name: KeyName = Field(description="the key's name, e.g. 'metal-ipi.'")
    algorithm: Literal["hmac-sha256", "hmac-sha384", "hmac-sha512"] = Field(
        default="hmac-sha256", description="hmac-sha256, hmac-sha384 or hmac-sha512"
    )
    secret: SecretStr | None = Field(default=None, description="the key, base64, as a secret")

    @field_validator("secret")
    @classmethod
    def _base64(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and value.get_secret_value() != REHEARSAL:
            try:
                base64.b64decode(value.get_secret_value(), validate=True)
            except ValueError:
                raise wrong("it is not base64", "copy the secret as `tsig-keygen` or `keymgr -t` prints it") from None
        return value


class _Kept(Section):
    """What all DNS services that we write to share."""

    zone: Zone | None = Field(default=None, description="the zone of the records; not set: baseDomain")
    reverse_zones: ReverseZones = Field(
        default=(),
        strict=False,
        description="reverse zones in which PTR records are written, by name or as networks (198.51.100.0/24)",
    )
    propagation: Literal["authoritative", "service"] = Field(
        default="authoritative",
        description=(
            "when a change counts as visible: authoritative (all name servers of the zone have it) or service "
            "(the service reports it)"
        ),
    )
    propagation_timeout: int = Field(default=60, ge=1, le=86400, description="seconds until a change must be visible")


class _Updates(_Kept):
    """A DNS server that accepts dynamic updates (RFC 2136)."""

    server: str | None = Field(default=None, description="the address of the primary server of the zone")
    port: int = Field(default=53, ge=1, le=65535, description="the server's port")
    ttl: int = Field(default=30, ge=1, le=86400, description="seconds that resolvers may keep an answer")
    tsig: Tsig | None = Field(default=None, description="the key that signs updates")

    @field_validator("server")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        return _address(value)


class Rfc2136(_Updates):
    """A DNS server that accepts dynamic updates (RFC 2136): BIND, Knot, PowerDNS, Windows..."""

    type: Literal["rfc2136"] = "rfc2136"


class Delegate(_Updates):
    """A DNS server with dynamic updates for a delegated zone; you set the zone's NS records in the parent zone by hand.

    Missing NS records are printed, and waited for on each of the parent zone's name servers.
    """

    type: Literal["delegate"] = "delegate"
    parent_servers: tuple[str, ...] = Field(
        default=(), strict=False, description="addresses of the parent zone's name servers; empty: found by DNS"
    )
    delegation_timeout: int = Field(
        default=3600, ge=1, le=LONGEST_WAIT, description="seconds until the NS records must be there"
    )

    @field_validator("parent_servers")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for server in value:
            _address(server)
        return value


class Route53(_Kept):
    """A hosted zone of AWS. Each change is always waited for: Route 53 reports when all of its servers have it."""

    type: Literal["route53"] = "route53"
    zone_id: str | None = Field(default=None, description="the hosted zone's id, where several have the zone's name")
    region: Region = Field(default="us-east-1", description="the region whose endpoint is used; Route 53 is global")
    access_key_id: KeyId | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")
    endpoint: Endpoint | None = Field(default=None, description="an endpoint other than AWS's, for tests")
    ttl: int = Field(default=30, ge=1, le=86400, description="seconds that resolvers may keep an answer")

    @field_validator("zone_id")
    @classmethod
    def _id(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z0-9]{1,32}", value):
            raise wrong("it is not an id of a hosted zone", "copy it from the zone's details, without '/hostedzone/'")
        return value


class Cloudflare(_Kept):
    """A zone at Cloudflare. Records are not proxied, because the API is not a website."""

    type: Literal["cloudflare"] = "cloudflare"
    auth_token: SecretStr | None = Field(
        default=None, description="an API token with Zone:Read and DNS:Edit on the zone, as a secret"
    )
    zone_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,64}$")] | None = Field(
        default=None, description="the zone's id, where the token cannot list zones"
    )
    endpoint: Endpoint | None = Field(default=None, description="an API other than Cloudflare's, for tests")
    ttl: int = Field(default=60, ge=60, le=86400, description="seconds that resolvers may keep an answer, 60 or more")


class LexiconOptions(Section):
    """Options of a service, with dns-lexicon's names (auth_token, auth_username...); every value is a secret."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="allow", frozen=True, hide_input_in_errors=True, strict=True
    )
    # This is how pydantic is given the type of undeclared fields.
    __pydantic_extra__: dict[str, SecretStr] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]


class Lexicon(_Kept):
    """Any other service of dns-lexicon: gandi, hetzner, googleclouddns, ovh, desec..."""

    type: Literal["lexicon"] = "lexicon"
    service: str = Field(description="the service's name in dns-lexicon")
    options: LexiconOptions = Field(
        default_factory=LexiconOptions, description="the service's options, named as dns-lexicon names them"
    )
    ttl: int = Field(default=300, ge=1, le=86400, description="seconds that resolvers may keep an answer")

    @field_validator("service")
    @classmethod
    def _known(cls, value: str) -> str:
        if value in _OWN_KIND:
            raise wrong(f"{value} has a type of its own", f"set dns.type to {_OWN_KIND[value]}")
        offered = lexicon_services.services().keys() - _NOT_OFFERED
        if value not in offered:
            guess = nearest(value, offered)
            remedy = f"did you mean '{guess}'?" if guess else "`lexicon --help` lists the services"
            raise wrong("dns-lexicon has no such service", remedy)
        return value

    @model_validator(mode="after")
    def _known_options(self) -> Lexicon:
        known = lexicon_services.options(self.service)
        for name in self.options.__pydantic_extra__:
            if known and name not in known:
                guess = nearest(name, known)
                raise wrong(
                    f"service {self.service} has no option {name}",
                    f"did you mean '{guess}'?" if guess else f"known here: {', '.join(sorted(known))}",
                    at=f"options.{name}",
                )
        return self


class NoDns(Section):
    """This program writes no DNS records: you set them by hand, and the gates wait for them.

    Needed are A records of `api` and `api-int` (the control plane's addresses, and the bootstrap machine's until it is
    removed; or the API's own address), of `*.apps`, and of every node; AAAA records with dual stack. They are printed
    as soon as the addresses are known. The machines, and the host where `up` runs, must be able to resolve them.
    """

    type: Literal["none"] = "none"

    @property
    def ttl(self) -> int:
        """0: no record is withdrawn, so there is no time to live to wait for."""
        return 0

    @property
    def zone(self) -> None:
        """None: we manage no zone."""
        return

    @property
    def reverse_zones(self) -> tuple[str, ...]:
        """Empty: we manage no reverse zone."""
        return ()


_OWN_KIND = {"ddns": "rfc2136", "route53": "route53", "cloudflare": "cloudflare"}
_NOT_OFFERED = {"localzone"}  # it edits a local file
