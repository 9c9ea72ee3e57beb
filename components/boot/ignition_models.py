"""Ignition's configuration, as far as we render it.

Models follow spec 3.3.0 (coreos/ignition docs/configuration-v3_3.md), refuse everything else and write only what is
set.
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic.alias_generators import to_camel

SPEC = "3.3.0"


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Verification(_Model):
    """The hash that fetched data must have."""

    hash: str | None = None

    @field_validator("hash")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"sha512-[0-9a-f]{128}|sha256-[0-9a-f]{64}", value):
            raise ValueError("it is neither 'sha512-' nor 'sha256-' and the digits of the hash")
        return value


class Resource(_Model):
    """Something to fetch."""

    source: str
    verification: Verification | None = None

    @field_validator("source")
    @classmethod
    def _scheme(cls, value: str) -> str:
        if not value.startswith(("https://", "data:")):
            raise ValueError("only https: and data: sources are rendered")
        return value


class Config(_Model):
    """Configs to merge."""

    merge: tuple[Resource, ...] = ()


class Tls(_Model):
    """Certificate authorities to trust while fetching."""

    certificate_authorities: tuple[Resource, ...] = ()


class Security(_Model):
    """How fetching is secured."""

    tls: Tls


class Ignition(_Model):
    """The `ignition` section."""

    version: str = SPEC
    config: Config | None = None
    security: Security | None = None


class User(_Model):
    """A user and the keys that open its account."""

    name: str
    ssh_authorized_keys: tuple[str, ...] = ()


class Passwd(_Model):
    """The `passwd` section."""

    users: tuple[User, ...] = ()


class File(_Model):
    """A file to write."""

    path: str
    mode: int
    overwrite: bool = True
    contents: Resource

    @field_validator("path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/"):
            raise ValueError("it is no absolute path")
        return value


class Link(_Model):
    """A symbolic link."""

    path: str
    target: str
    overwrite: bool = True


class Storage(_Model):
    """The `storage` section."""

    files: tuple[File, ...] = ()
    links: tuple[Link, ...] | None = None


class Unit(_Model):
    """A systemd unit."""

    name: str
    enabled: bool | None = None
    mask: bool | None = None
    contents: str | None = None


class Systemd(_Model):
    """The `systemd` section."""

    units: tuple[Unit, ...] = ()


class Document(_Model):
    """A whole config."""

    ignition: Ignition
    passwd: Passwd | None = None
    storage: Storage | None = None
    systemd: Systemd | None = None
