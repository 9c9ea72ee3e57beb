"""Where the cluster's names are kept."""

from __future__ import annotations

import base64
import ipaddress
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from stacks.sections.base import REHEARSAL, Section, wrong


class Tsig(Section):
    """A key that signs DNS updates (RFC 8945)."""

    name: str = Field(description="the key's name, e.g. 'metal-ipi.'")
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


class Rfc2136(Section):
    """A DNS server that takes dynamic updates (RFC 2136): BIND, Knot, PowerDNS, Windows..."""

    type: Literal["rfc2136"] = "rfc2136"
    server: str | None = Field(default=None, description="the address of the primary server of the zone")
    port: int = Field(default=53, ge=1, le=65535, description="the server's port")
    zone: str | None = Field(default=None, description="the zone the records stand in; not set: baseDomain")
    ttl: int = Field(default=30, ge=1, le=86400, description="seconds that resolvers may keep an answer")
    tsig: Tsig | None = Field(default=None, description="the key that signs updates")

    @field_validator("server")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ipaddress.ip_address(value)
            except ValueError:
                raise wrong(
                    "it is no IP address", "give the address of the zone's primary server, not its name"
                ) from None
        return value
