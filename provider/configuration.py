"""The provider's configuration: five sections, each one JSON string, because provider configuration is flat.

Only the form is checked, and nothing is contacted: a preview without credentials gives `rehearsal` for each of them.
Every section is optional; a resource that needs a missing one says so by name when it works.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from provider import bmc_settings, dns_settings
from provider.bmc_settings import BmcSettings
from provider.dns_settings import DnsSettings
from provider.errors import InvalidInputs
from provider.fields import PEM, PLACEHOLDER, SSH_KEY, URI, URL, Problem, Reader
from provider.values import Unknown

METAL_ENDPOINT = "https://api.equinix.com/metal/v1"
LIBVIRT_URI = "qemu:///system"
SECTIONS = ("metal", "bmcs", "libvirt", "dns", "artifacts")
_ENGINE_KEYS = frozenset({"version", "pluginDownloadURL", "parameterization"})


@dataclass(frozen=True, kw_only=True)
class MetalSettings:
    """The Equinix Metal API."""

    auth_token: str
    endpoint: str


@dataclass(frozen=True, kw_only=True)
class SshArtifactSettings:
    """An artifact host reached over SFTP."""

    host: str
    port: int
    user: str
    host_key: str
    private_key: str
    directory: str
    base_url: str
    boot_base_url: str
    matchbox: str | None = None
    """The data directory of a matchbox that boots machines there, in place of the boot tree."""
    ca_bundle: str | None = None
    """The authority (PEM) of its web server's certificate; None: one that every system trusts."""


@dataclass(frozen=True, kw_only=True)
class S3ArtifactSettings:
    """An artifact bucket."""

    bucket: str
    prefix: str
    region: str
    endpoint: str | None
    access_key_id: str
    secret_access_key: str
    base_url: str
    boot_base_url: str
    ca_bundle: str | None = None
    """As above."""


ArtifactSettings = SshArtifactSettings | S3ArtifactSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The whole configuration."""

    metal: MetalSettings | None = None
    bmcs: Mapping[str, BmcSettings] | None = None
    """By server name."""
    libvirt_uri: str = LIBVIRT_URI
    """Which libvirt runs virtual machines."""
    dns: DnsSettings | None = None
    artifacts: ArtifactSettings | None = None

    def need_metal(self) -> MetalSettings:
        """The section, or an error that names it."""
        if self.metal is None:
            raise _missing("metal", "the Equinix Metal API")
        return self.metal

    def need_bmc(self, server: str) -> BmcSettings:
        """A server's BMC, or an error that names what is missing."""
        if self.bmcs is None:
            raise _missing("bmcs", "the servers' BMCs")
        if server not in self.bmcs:
            known = ", ".join(sorted(self.bmcs)) or "none"
            raise InvalidInputs(f"server {server} is not in `bmcs` of the metal-ipi provider; known are {known}")
        return self.bmcs[server]

    def need_dns(self) -> DnsSettings:
        """The section, or an error that names it."""
        if self.dns is None:
            raise _missing("dns", "the DNS service")
        return self.dns

    def need_artifacts(self) -> ArtifactSettings:
        """The section, or an error that names it."""
        if self.artifacts is None:
            raise _missing("artifacts", "the artifact host")
        return self.artifacts


_SECRET = frozenset({"auth_token", "password", "tsig_secret", "private_key", "secret_access_key", "session_token"})
_OPTIONS = "options"
"""Of a service of dns-lexicon: which of them are secret, only that service knows."""


def secret_values(settings: object, *, everything: bool = False) -> Iterator[str]:
    """Every secret of a configuration, or of a part of it."""
    if isinstance(settings, str) and everything:
        yield settings
    elif isinstance(settings, Mapping):
        for item in settings.values():
            yield from secret_values(item, everything=everything)
    elif is_dataclass(settings):
        for part in fields(settings):
            secret = part.name in _SECRET or part.name == _OPTIONS
            yield from secret_values(getattr(settings, part.name), everything=everything or secret)


def _missing(section: str, what: str) -> InvalidInputs:
    return InvalidInputs(f"the provider is not told how to reach {what}: set `{section}` of the metal-ipi provider")


def parse(values: Mapping[str, Any]) -> tuple[Settings, list[Problem]]:
    """Reads the configuration as the engine gives it. Unknown sections (in a preview) count as absent."""
    problems: list[Problem] = []
    root = Reader({key: value for key, value in values.items() if key not in _ENGINE_KEYS}, problems=problems)
    root.only(*SECTIONS)
    metal, bmcs, libvirt, dns, artifacts = (_section(root, key) for key in SECTIONS)
    settings = Settings(
        metal=None if metal is None else _metal(metal),
        bmcs=None if bmcs is None else bmc_settings.read(bmcs),
        libvirt_uri=LIBVIRT_URI if libvirt is None else _libvirt(libvirt),
        dns=None if dns is None else dns_settings.read(dns),
        artifacts=None if artifacts is None else _artifacts(artifacts),
    )
    return settings, problems


def _section(root: Reader, key: str) -> Reader | None:
    value = root.values.get(key)
    if value is None or isinstance(value, Unknown):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            root.fail(key, "must be a JSON object in a string")
            return None
    if not isinstance(value, Mapping):
        root.fail(key, "must be a JSON object")
        return None
    return Reader(value, key, root.problems)


def _metal(reader: Reader) -> MetalSettings:
    reader.only("authToken", "endpoint")
    endpoint = reader.text("endpoint", pattern=URL, what="a URL", default=METAL_ENDPOINT)
    return MetalSettings(auth_token=reader.text("authToken"), endpoint=endpoint.rstrip("/"))


def _libvirt(reader: Reader) -> str:
    reader.only("uri")
    return reader.text("uri", pattern=URI, what="a connection URI of libvirt's, qemu:///system", default=LIBVIRT_URI)


def _artifacts(reader: Reader) -> ArtifactSettings | None:
    kind = reader.text("type")
    base_url = reader.text("baseUrl", pattern=URL, what="a URL").rstrip("/")
    boot_base_url = reader.text("bootBaseUrl", pattern=URL, what="a URL").rstrip("/")
    ca_bundle = reader.optional_text("caBundle", pattern=PEM, what="in PEM")
    if kind == "s3":
        reader.only("type", "bucket", "prefix", "region", "endpoint", "accessKeyId", "secretAccessKey", *_URLS)
        return S3ArtifactSettings(
            bucket=reader.text("bucket"),
            prefix=reader.text("prefix", default="").strip("/") if reader.values.get("prefix") else "",
            region=reader.text("region"),
            endpoint=reader.optional_text("endpoint", pattern=URL, what="a URL"),
            access_key_id=reader.text("accessKeyId"),
            secret_access_key=reader.text("secretAccessKey"),
            base_url=base_url,
            boot_base_url=boot_base_url,
            ca_bundle=ca_bundle,
        )
    if kind in ("ssh", PLACEHOLDER):
        reader.only("type", "host", "port", "user", "hostKey", "privateKey", "directory", "matchbox", *_URLS)
        return SshArtifactSettings(
            host=reader.text("host"),
            port=int(reader.number("port", default=22, minimum=1, maximum=65535)),
            user=reader.text("user"),
            host_key=reader.text("hostKey", pattern=SSH_KEY, what="an SSH public key, `ssh-ed25519 AAAA…`"),
            private_key=reader.text("privateKey", pattern=PEM, what="an OpenSSH private key in PEM"),
            directory=reader.text("directory", pattern=r"/.*", what="an absolute path"),
            matchbox=reader.optional_text("matchbox", pattern=r"/.*", what="an absolute path"),
            base_url=base_url,
            boot_base_url=boot_base_url,
            ca_bundle=ca_bundle,
        )
    if kind:
        reader.fail("type", "must be `ssh` or `s3`")
    return None


_URLS = ("baseUrl", "bootBaseUrl", "caBundle")
