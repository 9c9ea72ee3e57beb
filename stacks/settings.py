"""The settings of a stack: one validated tree, and the only reader of `pulumi.Config`.

`load()` reads every `metal-ipi:` key of the stack's configuration at once, validates without touching disk or network,
and raises one SettingsError that lists all problems. Keys are camelCase, as is usual in stack files.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pulumi
import pulumi.runtime.config
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from stacks.problems import SECRET_NAMES, Problem, SettingsError, describe

NAMESPACE = "metal-ipi"
REHEARSAL = "rehearsal"
"""Stands for a secret that a rehearsal (an offline preview) does not have; never used for a real change."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,52}[a-z0-9])?")
_DOMAIN = re.compile(r"(?=.{1,230}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KERNEL_NAME = re.compile(r"/dev/(sd[a-z]+|vd[a-z]+|hd[a-z]+|nvme\d+n\d+)")
_SSH_KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")
# The publicly known pull secret that OKD's documentation gives: it opens nothing, the installer only wants one.
OKD_PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'  # noqa: S105


def _wrong(why: str, remedy: str, *, at: str = "") -> PydanticCustomError:
    """A problem of the value being validated, or of the setting `at` below it."""
    return PydanticCustomError("metal_ipi", "{why}", {"why": why, "remedy": remedy, "at": at})


def _is_public_key(text: str) -> bool:
    words = text.split()
    return len(words) >= 2 and words[0] in _SSH_KEY_TYPES and words[1].startswith("AAAA")


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True, strict=True
    )


class EquinixMetal(_Model):
    """Servers of an Equinix Metal project."""

    type: Literal["equinix-metal"] = "equinix-metal"
    auth_token: SecretStr | None = Field(default=None, description="an API token (user or project), as a secret")
    project_id: str | None = Field(
        default=None, description="the id (UUID) of an existing project; else set projectName"
    )
    project_name: str | None = Field(default=None, description="the name of a project to create; needs organizationId")
    organization_id: str | None = Field(default=None, description="the id (UUID) of the organization of a new project")
    metro: str | None = Field(default=None, description="a metro code such as 'da'; else set facility")
    facility: str | None = Field(default=None, description="a facility code such as 'da11'; else set metro")
    bootstrap_plan: str = Field(
        default="c3.small.x86", description="the plan of the bootstrap machine; small is enough"
    )
    control_plane_plan: str = Field(default="c3.medium.x86", description="the plan of control plane machines")
    worker_plan: str = Field(default="c3.medium.x86", description="the plan of workers")

    @field_validator("project_id", "organization_id")
    @classmethod
    def _uuid(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
            raise _wrong("it is no UUID", "copy the id from the project's (organization's) settings")
        return value

    @model_validator(mode="after")
    def _one_of_each(self) -> EquinixMetal:
        if self.project_id is not None and self.project_name is not None:
            raise _wrong(
                "projectId and projectName are both set", "set projectId to use a project, projectName to create one"
            )
        if self.project_name is not None and self.organization_id is None:
            raise _wrong("projectName needs organizationId", "set platform.organizationId to the owner of the project")
        if (self.metro is None) == (self.facility is None):
            raise _wrong(
                "exactly one of metro and facility must be set", "set metro (any of its facilities) or facility"
            )
        return self


class ControlPlane(_Model):
    """The machines that run etcd and the API."""

    count: Literal[1, 3] = Field(
        default=3, description="3, or 1 for a single node; etcd has no quorum with other counts"
    )


class Workers(_Model):
    """The machines that run workloads."""

    count: int = Field(default=2, ge=0, le=1000, description="0 to 1000; with 0 the control plane is schedulable")


class Boot(_Model):
    """What the machines boot, over iPXE."""

    stream_url: str | None = Field(
        default=None, description="an http(s) URL of CoreOS stream metadata (JSON); else streamFile"
    )
    stream_file: str | None = Field(
        default=None,
        description="a file of CoreOS stream metadata, relative to the project;"
        " `openshift-install coreos print-stream-json` prints it",
    )
    architecture: Literal["x86_64", "aarch64"] = Field(default="x86_64", description="x86_64 or aarch64")
    install_device: str | None = Field(
        default=None,
        description="a stable device path (/dev/disk/by-id/..., by-path) to install to;"
        " not set: the live system runs from memory",
    )
    kernel_arguments: tuple[str, ...] = Field(
        default=(), strict=False, description="more kernel arguments, one per item"
    )
    consoles: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="consoles as the kernel takes them, e.g. ttyS1,115200n8; empty: the platform's own",
    )

    @field_validator("stream_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^/\s]+/\S+", value):
            raise _wrong(
                "it is no http(s) URL", "give the URL of the stream document, e.g. https://host/streams/stable.json"
            )
        return value

    @field_validator("install_device")
    @classmethod
    def _stable(cls, value: str | None) -> str | None:
        if value is None:
            return value
        if _KERNEL_NAME.fullmatch(value):
            raise _wrong(
                "kernel names such as /dev/sda change between boots, and the wrong disk would be wiped",
                "give a stable name: a path below /dev/disk/by-id, by-path or by-diskseq",
            )
        if not value.startswith("/dev/disk/by-"):
            raise _wrong("it is no stable device path", "give a path below /dev/disk/by-id or /dev/disk/by-path")
        return value

    @field_validator("kernel_arguments", "consoles")
    @classmethod
    def _one_word_each(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if not item or any(character.isspace() for character in item):
                raise _wrong(f"'{item}' is not one argument", "write one argument per list item, without spaces")
        return value

    @model_validator(mode="after")
    def _one_stream(self) -> Boot:
        if self.stream_url is not None and self.stream_file is not None:
            raise _wrong("streamUrl and streamFile are both set", "set one of them")
        return self


class Tsig(_Model):
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
                raise _wrong("it is not base64", "copy the secret as `tsig-keygen` or `keymgr -t` prints it") from None
        return value


class Rfc2136(_Model):
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
                raise _wrong(
                    "it is no IP address", "give the address of the zone's primary server, not its name"
                ) from None
        return value


class DnsRoundRobin(_Model):
    """The API's names resolve to all control plane machines."""

    type: Literal["dns-round-robin"] = "dns-round-robin"


def _https(value: str | None) -> str | None:
    """Ignition holds secrets: it is fetched from a server that proves who it is."""
    if value is not None and not re.fullmatch(r"https://[^/\s]+(/\S*)?", value):
        raise _wrong("it is no https URL", "give the https URL under which uploaded files are served")
    return value


def _boot_url(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", value):
        raise _wrong("it is no http(s) URL", "give the URL under which the firmware fetches uploaded files")
    return value


_HttpsUrl = Annotated[str, AfterValidator(_https)]
_BootUrl = Annotated[str, AfterValidator(_boot_url)]


class SshArtifacts(_Model):
    """A web server whose files are uploaded over SSH (SFTP)."""

    type: Literal["ssh"] = "ssh"
    host: str | None = Field(default=None, description="the host to upload to")
    port: int = Field(default=22, ge=1, le=65535, description="its SSH port")
    user: str | None = Field(default=None, description="the user who may write to directory")
    host_key: str | None = Field(default=None, description="the host's public key, 'ssh-ed25519 AAAA...', to pin it")
    private_key: SecretStr | None = Field(default=None, description="the user's private key (OpenSSH PEM), as a secret")
    directory: str = Field(default="/artifacts", description="the directory that the web server serves, absolute")
    base_url: _HttpsUrl | None = Field(default=None, description="the https URL under which directory is served")
    boot_base_url: _BootUrl | None = Field(
        default=None,
        description="the URL for iPXE scripts where the firmware does not trust baseUrl's CA; not set: baseUrl",
    )

    @field_validator("directory")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/"):
            raise _wrong("it is not absolute", "give the whole path, from / on, as the SFTP server sees it")
        return value

    @field_validator("host_key")
    @classmethod
    def _public_key(cls, value: str | None) -> str | None:
        if value is not None and not _is_public_key(value):
            raise _wrong("it is no SSH public key", "take it from `ssh-keyscan <host>`, without the host's name")
        return value


class S3Artifacts(_Model):
    """A bucket that is readable over https by whoever knows the key of an object."""

    type: Literal["s3"] = "s3"
    bucket: str = Field(description="the bucket")
    prefix: str = Field(default="metal-ipi", description="the keys' prefix")
    region: str = Field(description="the bucket's region")
    endpoint: str | None = Field(default=None, description="an S3 endpoint other than AWS's")
    access_key_id: str | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")
    base_url: _HttpsUrl = Field(description="the https URL under which the bucket's objects are served")
    boot_base_url: _BootUrl | None = Field(default=None, description="the URL for iPXE scripts; not set: baseUrl")


class Install(_Model):
    """How the cluster is installed."""

    distribution: Literal["openshift", "okd"] = Field(default="openshift", description="openshift or okd")
    installer: str = Field(
        default="openshift-install", description="the installer program, on PATH or an absolute path"
    )
    pull_secret: SecretStr | None = Field(
        default=None, description="the pull secret (JSON), as a secret; okd needs none"
    )
    work_directory: str = Field(
        default=".state/install", description="where the installer works for a moment; mode 0700"
    )
    log_directory: str = Field(default=".state/logs", description="where logs of failed gates are gathered")

    @field_validator("pull_secret")
    @classmethod
    def _json(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or value.get_secret_value() == REHEARSAL:
            return value
        try:
            document: Any = json.loads(value.get_secret_value())
        except ValueError:
            document = None
        if not isinstance(document, dict) or not isinstance(document.get("auths"), dict):
            raise _wrong(
                'it is no pull secret: JSON with an object "auths"',
                "download it from console.redhat.com/openshift/install/pull-secret and set it with --secret",
            )
        return value


class Ssh(_Model):
    """Who may log in to the nodes."""

    authorized_keys: tuple[str, ...] = Field(
        default=(), strict=False, description="public keys of people, one per item"
    )

    @field_validator("authorized_keys")
    @classmethod
    def _public(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for key in value:
            if not _is_public_key(key):
                raise _wrong(
                    "one item is no SSH public key", "give the content of a .pub file: 'ssh-ed25519 AAAA... name'"
                )
        return value


class Timeouts(_Model):
    """How long each gate waits before it fails, in seconds."""

    machines_active: int = Field(default=1800, ge=1, description="machine ordered until the platform calls it active")
    machines_reachable: int = Field(default=1800, ge=1, description="machine active until it answers SSH")
    api_answers: int = Field(default=1800, ge=1, description="until the API answers on its address")
    bootstrap_complete: int = Field(default=3600, ge=1, description="until bootstrap is complete")
    nodes_ready: int = Field(default=2400, ge=1, description="bootstrap complete until all nodes are Ready")
    install_complete: int = Field(default=4200, ge=1, description="until the cluster version is available")


class Lab(_Model):
    """Marks a stack that runs in the lab; read by the command line, not by the program."""

    machines: Literal["libvirt", "simulated"] = Field(default="libvirt", description="libvirt (emulated) or simulated")


class Settings(_Model):
    """All settings of one stack."""

    cluster_name: str = Field(description="the first label of the cluster's domain")
    base_domain: str = Field(description="the domain below which the cluster's names stand")
    openshift_version: str = Field(description="the OpenShift or OKD release to install, e.g. 4.21.3")
    platform: EquinixMetal = Field(description="where the machines come from")
    control_plane: ControlPlane = Field(default_factory=ControlPlane, description="the control plane machines")
    workers: Workers = Field(default_factory=Workers, description="the workers")
    boot: Boot = Field(default_factory=Boot, description="what the machines boot")
    dns: Rfc2136 = Field(description="where the cluster's names are kept")
    api_address: DnsRoundRobin = Field(default_factory=DnsRoundRobin, description="how the API is reached")
    artifacts: Annotated[SshArtifacts | S3Artifacts, Field(discriminator="type")] = Field(
        description="where Ignition and boot scripts are uploaded"
    )
    install: Install = Field(default_factory=Install, description="how the cluster is installed")
    ssh: Ssh = Field(default_factory=Ssh, description="who may log in to the nodes")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="how long each gate waits, seconds")
    lab: Lab | None = Field(default=None, description="set only for stacks that run in the lab")
    rehearsal: bool = Field(default=False, description="an offline preview: missing secrets are stood in for")

    @property
    def domain(self) -> str:
        """The cluster's domain: every name of the cluster ends in it."""
        return f"{self.cluster_name}.{self.base_domain}"

    @property
    def zone(self) -> str:
        """The DNS zone of the records."""
        return self.dns.zone or self.base_domain

    @field_validator("cluster_name")
    @classmethod
    def _label(cls, value: str) -> str:
        if not _LABEL.fullmatch(value):
            raise _wrong("it is no DNS label", "use up to 54 of a-z, 0-9 and '-', beginning and ending with a-z or 0-9")
        return value

    @field_validator("base_domain")
    @classmethod
    def _domain(cls, value: str) -> str:
        if not _DOMAIN.fullmatch(value):
            raise _wrong("it is no DNS domain", "use lower-case labels separated by dots, without a dot at the end")
        return value

    @field_validator("openshift_version")
    @classmethod
    def _release(cls, value: str) -> str:
        if not re.fullmatch(r"4\.\d+\.\d+([-.+][0-9A-Za-z.+-]+)?", value):
            raise _wrong("it is no release", "give major, minor and patch, e.g. 4.21.3 or 4.20.0-okd-scos.5")
        return value

    @model_validator(mode="after")
    def _zone_holds_cluster(self) -> Settings:
        zone = self.zone
        if self.domain != zone and not self.domain.endswith(f".{zone}"):
            raise _wrong(
                f"{self.domain} is not within the zone {zone}",
                "set dns.zone to a parent of the cluster's domain",
                at="dns.zone",
            )
        if self.control_plane.count == 1 and self.workers.count > 0:
            raise _wrong(
                "a single control plane machine cannot have workers here",
                "set workers.count to 0 (single node), or controlPlane.count to 3",
                at="workers.count",
            )
        return self


# What a real change needs and a rehearsal does not: (path, when it applies).
_NEEDED: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("platform.authToken", lambda tree: True),
    ("dns.server", lambda tree: True),
    ("dns.tsig.secret", lambda tree: True),
    ("boot.streamFile", lambda tree: not _at(tree, "boot.streamUrl")),
    ("install.pullSecret", lambda tree: _at(tree, "install.distribution") != "okd"),
    *(
        (f"artifacts.{key}", lambda tree: _at(tree, "artifacts.type") == "ssh")
        for key in ("host", "user", "hostKey", "privateKey", "baseUrl")
    ),
    *(
        (f"artifacts.{key}", lambda tree: _at(tree, "artifacts.type") == "s3")
        for key in ("accessKeyId", "secretAccessKey")
    ),
)


def _at(tree: dict[str, Any], path: str) -> Any:
    value: Any = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _incomplete(tree: dict[str, Any]) -> list[Problem]:
    """Only a rehearsal may leave out secrets and what only the facility knows."""
    problems = [
        Problem(
            path=f"{NAMESPACE}:{path}",
            value="(not set)",
            why="only a rehearsal can do without it",
            remedy=f"pulumi config set {'--secret ' if path.split('.')[-1] in SECRET_NAMES else ''}"
            f"--path '{NAMESPACE}:{path}' <value>",
        )
        for path, applies in _NEEDED
        if applies(tree) and _at(tree, path) in (None, "", REHEARSAL)
    ]
    if not _at(tree, "platform.projectId") and not _at(tree, "platform.projectName"):
        problems.append(
            Problem(
                path=f"{NAMESPACE}:platform.projectId",
                value="(not set)",
                why="the machines need a project",
                remedy="set projectId to use a project, or projectName and organizationId to create one",
            )
        )
    return problems


def load() -> Settings:
    """Read and validate the running stack's configuration.

    Raises SettingsError with every problem; validation does no I/O and registers no resource.
    """
    known = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    values = {key.partition(":")[2]: value for key, value in known.items() if key.startswith(f"{NAMESPACE}:")}
    settings = parse(values, pulumi.get_stack())
    if settings.rehearsal and not pulumi.runtime.is_dry_run():
        problem = Problem(
            path=f"{NAMESPACE}:rehearsal",
            value="true",
            why="a rehearsal is a preview: missing secrets are stood in for, and this would change something",
            remedy=f"pulumi config rm {NAMESPACE}:rehearsal",
        )
        raise SettingsError(pulumi.get_stack(), [problem])
    return settings


def parse(values: dict[str, str], stack: str) -> Settings:
    """Validate configuration values as the engine hands them over: every value a string, objects as JSON."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        if value in ("", "{}"):  # the defaults in Pulumi.yaml, which mean: not set
            continue
        field = next((info for info in Settings.model_fields.values() if info.alias == key), None)
        if field is None or field.annotation is str:
            tree[key] = value
            continue
        try:
            tree[key] = json.loads(value)
        except ValueError:
            tree[key] = value
    problems = [] if tree.get("rehearsal") is True else _incomplete(tree)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        problems += describe(error, Settings)
    else:
        if not problems:
            return settings
    unique = {(problem.path, problem.why): problem for problem in problems}
    raise SettingsError(stack, sorted(unique.values(), key=lambda problem: problem.path))
