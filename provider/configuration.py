"""The provider's configuration: seven sections, each one JSON string, because provider configuration is flat.

Only the form is checked, and nothing is contacted: a preview without credentials gives `rehearsal` for each of them.
Every section is optional; a resource that needs a missing section reports it when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator

from metal_ipi.provider import dns_settings
from metal_ipi.provider.bmc_settings import BmcSettings
from metal_ipi.provider.dns_settings import DnsSettings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.forms import (
    PEM,
    PLACEHOLDER,
    AbsolutePath,
    Anything,
    BaseUrl,
    Pem,
    Port,
    SshKey,
    Uri,
    Url,
    form,
)
from metal_ipi.provider.given import SECRET, Secret
from metal_ipi.provider.inputs import Inputs, Problem, markers, not_known
from metal_ipi.provider.ironic_settings import IronicServer, IronicSettings
from metal_ipi.provider.values import Unknown

_T = TypeVar("_T")
METAL_ENDPOINT = "https://api.equinix.com/metal/v1"
LIBVIRT_URI = "qemu:///system"
SECTIONS = ("metal", "bmcs", "ironic", "libvirt", "dns", "artifacts", "registries")
_ENGINE_KEYS = frozenset({"version", "pluginDownloadURL", "parameterization"})


class MetalSettings(Inputs):
    """The Equinix Metal API."""

    auth_token: Secret[str]
    """An API token."""
    endpoint: BaseUrl = METAL_ENDPOINT
    """The API's URL."""


class _Libvirt(Inputs):
    """The libvirt that runs virtual machines."""

    uri: Uri = LIBVIRT_URI
    """libvirt's connection URI."""


class _ArtifactSettings(Inputs):
    """What all artifact hosts share."""

    base_url: BaseUrl
    """The URL from which machines fetch files."""
    boot_base_url: BaseUrl
    """The same for firmware that cannot verify TLS certificates."""
    ca_bundle: Pem | None = None
    """The certificate authority (PEM) of the web server's certificate. None: one that every system trusts."""


class SshArtifactSettings(_ArtifactSettings):
    """An artifact host reached over SFTP."""

    type: str = "ssh"
    """The type: `ssh`."""
    host: str
    """The host's name or address."""
    port: Port = 22
    """Its SSH port."""
    user: str
    """Its SSH user."""
    host_key: SshKey
    """Its pinned SSH host key."""
    private_key: Secret[Annotated[str, form(PEM, "an OpenSSH private key in PEM")]]
    """The private key of the SSH user."""
    directory: AbsolutePath
    """The directory for uploads."""
    matchbox: AbsolutePath | None = None
    """The data directory of a matchbox on that host, which boots the machines instead of the boot tree."""


class S3ArtifactSettings(_ArtifactSettings):
    """An artifact bucket."""

    type: str = "s3"
    """The type: `s3`."""
    bucket: str
    """The bucket's name."""
    prefix: Annotated[Anything, AfterValidator(lambda value: value.strip("/"))] = ""
    """The prefix of all keys."""
    region: str
    """The bucket's region."""
    endpoint: Url | None = None
    """An endpoint other than AWS's."""
    access_key_id: str
    """Id of the access key."""
    secret_access_key: Secret[str]
    """The access key's secret."""


class RegistrySettings(Inputs):
    """The registries from which the cluster's images are pulled."""

    pull_secret: Secret[str]
    """The pull secret (JSON) with their accounts."""
    ca: Pem | None = None
    """Certificate authorities (PEM) of the registries, besides those that every system trusts."""


ArtifactSettings = SshArtifactSettings | S3ArtifactSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The whole configuration."""

    metal: MetalSettings | None = None
    bmcs: Mapping[str, BmcSettings] | None = None
    """BMCs by server name."""
    ironic: IronicSettings | None = None
    ironic_servers: Mapping[str, IronicServer] = field(default_factory=dict[str, IronicServer])
    """Ironic's servers by name."""
    libvirt_uri: str = LIBVIRT_URI
    """The connection URI of the libvirt that runs virtual machines."""
    dns: DnsSettings | None = None
    artifacts: ArtifactSettings | None = None
    registries: RegistrySettings | None = None
    """Set if preflight asks registries."""

    def need_metal(self) -> MetalSettings:
        """The section. Raises InvalidInputs if it is missing."""
        return _needed(self.metal, "metal", "the Equinix Metal API")

    def need_bmc(self, server: str) -> BmcSettings:
        """A server's BMC. Raises InvalidInputs if the section or the server is missing."""
        bmcs = _needed(self.bmcs, "bmcs", "the servers' BMCs")
        if server not in bmcs:
            known = ", ".join(sorted(bmcs)) or "none"
            raise InvalidInputs(f"server {server} is not in `bmcs` of the metal-ipi provider; known are {known}")
        return bmcs[server]

    def need_ironic(self) -> IronicSettings:
        """The section. Raises InvalidInputs if it is missing."""
        return _needed(self.ironic, "ironic", "Ironic")

    def need_ironic_server(self, server: str) -> IronicServer:
        """One of Ironic's servers. Raises InvalidInputs if the section or the server is missing."""
        self.need_ironic()
        if server not in self.ironic_servers:
            known = ", ".join(sorted(self.ironic_servers)) or "none"
            raise InvalidInputs(
                f"server {server} is not in `ironic.servers` of the metal-ipi provider; known are {known}"
            )
        return self.ironic_servers[server]

    def need_dns(self) -> DnsSettings:
        """The section. Raises InvalidInputs if it is missing."""
        return _needed(self.dns, "dns", "the DNS service")

    def need_artifacts(self) -> ArtifactSettings:
        """The section. Raises InvalidInputs if it is missing."""
        return _needed(self.artifacts, "artifacts", "the artifact host")


def secret_values(settings: object, *, everything: bool = False) -> Iterator[str]:
    """All secret texts of a configuration, or of a part of it."""
    if isinstance(settings, str) and everything:
        yield settings
    elif isinstance(settings, Mapping):
        for item in settings.values():
            yield from secret_values(item, everything=everything)
    elif isinstance(settings, Inputs):
        for name in type(settings).model_fields:
            secret = everything or SECRET in markers(type(settings), name)
            yield from secret_values(getattr(settings, name), everything=secret)
    elif is_dataclass(settings):
        for part in fields(settings):
            yield from secret_values(getattr(settings, part.name), everything=everything)


def _needed(value: _T | None, section: str, what: str) -> _T:
    if value is None:
        raise InvalidInputs(f"the provider has no configuration for {what}: set `{section}` of the metal-ipi provider")
    return value


def parse(values: Mapping[str, Any]) -> tuple[Settings, list[Problem]]:
    """Parse the configuration from the engine. Unknown sections (in a preview) count as missing."""
    problems: list[Problem] = []
    given = {key: value for key, value in values.items() if key not in _ENGINE_KEYS}
    problems += [Problem(path=key, reason=not_known(key, SECTIONS)) for key in given if key not in SECTIONS]
    found = {key: section for key in SECTIONS if (section := _section(key, given.get(key), problems)) is not None}
    dns, wrong = dns_settings.read(found["dns"]) if "dns" in found else (None, [])
    ironic = dict(found["ironic"]) if "ironic" in found else None
    servers = ironic.pop("servers", None) or {} if ironic is not None else {}
    libvirt = _read(_Libvirt, found.get("libvirt"), "libvirt", problems)
    settings = Settings(
        metal=_read(MetalSettings, found.get("metal"), "metal", problems),
        bmcs=_servers(BmcSettings, found["bmcs"], "bmcs", problems) if "bmcs" in found else None,
        ironic=_read(IronicSettings, ironic, "ironic", problems),
        ironic_servers=_servers(IronicServer, servers, "ironic.servers", problems),
        libvirt_uri=libvirt.uri if libvirt else LIBVIRT_URI,
        dns=dns,
        artifacts=_artifacts(found["artifacts"], problems) if "artifacts" in found else None,
        registries=_read(RegistrySettings, found.get("registries"), "registries", problems),
    )
    return settings, [*problems, *wrong]


def _section(key: str, value: Any, problems: list[Problem]) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Unknown):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            problems.append(Problem(path=key, reason="must be a JSON object in a string"))
            return None
    if not isinstance(value, Mapping):
        problems.append(Problem(path=key, reason="must be a JSON object"))
        return None
    return value


_Read = TypeVar("_Read", bound=Inputs)


def _read(kind: type[_Read], values: Any, path: str, problems: list[Problem]) -> _Read | None:
    """Parse one section; None if it is missing or wrong. Appends its problems."""
    if values is None:
        return None
    wrong = kind.problems(values, path)
    problems += wrong
    return None if wrong else kind.read(values)


def _servers(kind: type[_Read], servers: Any, path: str, problems: list[Problem]) -> Mapping[str, _Read]:
    if not isinstance(servers, Mapping):
        problems.append(Problem(path=path, reason="must be a JSON object"))
        return {}
    found = {str(name): _read(kind, values or {}, f"{path}.{name}", problems) for name, values in servers.items()}
    return {name: server for name, server in found.items() if server is not None}


def _artifacts(values: Mapping[str, Any], problems: list[Problem]) -> ArtifactSettings | None:
    kind = values.get("type")
    if kind == "s3":
        return _read(S3ArtifactSettings, values, "artifacts", problems)
    if kind in ("ssh", PLACEHOLDER):
        return _read(SshArtifactSettings, values, "artifacts", problems)
    problems.append(Problem(path="artifacts.type", reason="is required" if kind is None else "must be `ssh` or `s3`"))
    return None
