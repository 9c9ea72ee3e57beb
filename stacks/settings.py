"""The settings of a stack: one validated tree, and the only reader of `pulumi.Config`.

`load()` reads every `metal-ipi:` key of the stack's configuration at once, validates without touching disk or network,
and raises one SettingsError that lists all problems. Keys are camelCase, as is usual in stack files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pulumi
import pulumi.runtime.config
from pydantic import Field, ValidationError, model_validator

from stacks.conflicts import conflicts
from stacks.plain import of_json, unfit
from stacks.problems import NAMESPACE, SECRET_NAMES, Problem, SettingsError, describe
from stacks.sections.api_address import DnsRoundRobin, ExternalApi, KubeVip, MachineConfigServer
from stacks.sections.artifacts import S3Artifacts, SshArtifacts
from stacks.sections.base import REHEARSAL, Section, wrong
from stacks.sections.boot import Boot
from stacks.sections.devices import DeviceRule
from stacks.sections.dns import Cloudflare, Delegate, Lexicon, NoDns, Rfc2136, Route53
from stacks.sections.equinix_metal import EquinixMetal
from stacks.sections.forms import BaseDomain, ClusterName, Release
from stacks.sections.install import Install, Lab, Ssh, Timeouts
from stacks.sections.machines import ControlPlane, Reprovision, Workers
from stacks.sections.preflight import Cost, Preflight
from stacks.sections.redfish import MACHINE_NAME, Redfish, Server
from stacks.sections.service_addresses import NoServiceAddresses, ServiceAddresses

# The publicly known pull secret that OKD's documentation gives: it opens nothing, the installer only wants one.
OKD_PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'  # noqa: S105


class Settings(Section):
    """All settings of one stack."""

    cluster_name: ClusterName = Field(description="the first label of the cluster's domain")
    base_domain: BaseDomain = Field(description="the domain below which the cluster's names stand")
    openshift_version: Release = Field(description="the OpenShift or OKD release to install, e.g. 4.21.3")
    platform: Annotated[EquinixMetal | Redfish, Field(discriminator="type")] = Field(
        description="where the machines come from"
    )
    control_plane: ControlPlane = Field(default_factory=ControlPlane, description="the control plane machines")
    workers: Workers = Field(default_factory=Workers, description="the workers")
    boot: Boot = Field(default_factory=Boot, description="what the machines boot")
    reprovision: Reprovision = Field(
        default_factory=Reprovision, description="how machines are installed anew when what they run has changed"
    )
    dns: Annotated[
        Rfc2136 | Route53 | Cloudflare | Lexicon | Delegate | NoDns,
        Field(discriminator="type"),
    ] = Field(description="where the cluster's names are kept")
    api_address: Annotated[DnsRoundRobin | KubeVip | ExternalApi, Field(discriminator="type")] = Field(
        default_factory=DnsRoundRobin, description="how the API is reached"
    )
    machine_config_server: MachineConfigServer = Field(
        default_factory=MachineConfigServer, description="who may ask for the machines' configuration"
    )
    service_addresses: ServiceAddresses = Field(
        default_factory=NoServiceAddresses, description="where services of type LoadBalancer get addresses from"
    )
    artifacts: Annotated[SshArtifacts | S3Artifacts, Field(discriminator="type")] = Field(
        description="where Ignition and boot scripts are uploaded"
    )
    install: Install = Field(default_factory=Install, description="how the cluster is installed")
    ssh: Ssh = Field(default_factory=Ssh, description="who may log in to the nodes")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="how long each gate waits, seconds")
    preflight: Preflight = Field(
        default_factory=Preflight, description="how the stack is checked before anything is ordered"
    )
    cost: Cost = Field(default_factory=Cost, description="where prices are from")
    protect: bool | None = Field(
        default=None,
        description="keys, project, reserved addresses and control plane machines are neither deleted nor replaced;"
        " not set: true, and false in the lab",
    )
    lab: Lab | None = Field(default=None, description="set only for stacks that run in the lab")
    rehearsal: bool = Field(default=False, description="an offline preview: missing secrets are stood in for")

    @property
    def domain(self) -> str:
        """The cluster's domain: every name of the cluster ends in it."""
        return f"{self.cluster_name}.{self.base_domain}"

    @property
    def protects(self) -> bool:
        """Whether what cannot be made again is protected: policies want that of every facility."""
        return self.lab is None if self.protect is None else self.protect

    def full(self, hostname: str) -> str:
        """The full name of a machine."""
        return f"{hostname}.{self.domain}"

    @property
    def zone(self) -> str | None:
        """The DNS zone of the records; None where nobody of ours keeps one."""
        return None if isinstance(self.dns, NoDns) else self.dns.zone or self.base_domain

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that last, by name within the cluster: control-plane-0, ..., worker-0, ..."""
        if isinstance(self.platform, Redfish):
            return tuple(server.name for role in ("control-plane", "worker") for server in self.platform.of_role(role))
        return (
            *(f"control-plane-{number}" for number in range(self.control_plane.count)),
            *(f"worker-{number}" for number in range(self.workers.count)),
        )

    def server(self, machine: str) -> Server | None:
        """The server of a machine (`worker-0`); None where machines are ordered."""
        servers = self.platform.servers if isinstance(self.platform, Redfish) else ()
        return next((server for server in servers if server.name == machine), None)

    @property
    def given_kernel_arguments(self) -> Iterator[tuple[str, str]]:
        """Each kernel argument that is set, wherever it is, with its path."""
        servers = self.platform.servers if isinstance(self.platform, Redfish) else ()
        for path, arguments in (
            ("boot", self.boot.kernel_arguments),
            ("controlPlane", self.control_plane.kernel_arguments),
            ("workers", self.workers.kernel_arguments),
            *((f"platform.servers[{index}]", server.kernel_arguments) for index, server in enumerate(servers)),
        ):
            for index, argument in enumerate(arguments):
                yield f"{path}.kernelArguments[{index}]", argument

    def kernel_arguments(self, machine: str) -> tuple[str, ...]:
        """What a machine (`worker-0`) gets on its kernel's command line: everybody's, its role's, its own."""
        server = self.server(machine)
        role = self.workers if machine.startswith("worker-") else self.control_plane
        return (*self.boot.kernel_arguments, *role.kernel_arguments, *(server.kernel_arguments if server else ()))

    def install_device(self, machine: str) -> DeviceRule:
        """Which disk a machine (`worker-0`) is installed to. Only where `boot.install` is set."""
        assert self.boot.install is not None
        server = self.server(machine)
        return (server.install_device if server else None) or self.boot.install.device

    def wipe_disks(self, machine: str) -> tuple[DeviceRule, ...]:
        """Which other disks of a machine (`worker-0`) are emptied. Only where `boot.install` is set."""
        assert self.boot.install is not None
        server = self.server(machine)
        own = server.wipe_disks if server else None
        return self.boot.install.wipe_disks if own is None else own

    @model_validator(mode="before")
    @classmethod
    def _listed_machines(cls, tree: Any) -> Any:
        """A list of servers says how many machines there are of each role."""
        names = [_at(server, "name") for server in _list(_at(tree, "platform.servers"))]
        roles = [match[1] for name in names if isinstance(name, str) and (match := MACHINE_NAME.fullmatch(name))]
        if _at(tree, "platform.type") != "redfish" or not roles or len(roles) < len(names):
            return tree  # nothing to count, or a name is wrong, which its own rule tells
        counted = {
            section: roles.count(role) for section, role in (("controlPlane", "control-plane"), ("workers", "worker"))
        }
        sections = {name: tree.get(name, {}) for name in counted}
        return {
            **tree,
            **{
                name: {"count": counted[name], **section}
                for name, section in sections.items()
                if isinstance(section, dict)
            },
        }

    @model_validator(mode="after")
    def _zone_holds_cluster(self) -> Settings:
        zone = self.zone
        if zone is not None and self.domain != zone and not self.domain.endswith(f".{zone}"):
            raise wrong(
                f"{self.domain} is not within the zone {zone}",
                "set dns.zone to a parent of the cluster's domain",
                at="dns.zone",
            )
        if self.control_plane.count == 1 and self.workers.count > 0:
            raise wrong(
                "a single control plane machine cannot have workers here",
                "set workers.count to 0 (single node), or controlPlane.count to 3",
                at="workers.count",
            )
        if isinstance(self.api_address, ExternalApi) and not self.machine_config_server.allowed_networks:
            raise wrong(
                "the load balancer's own addresses are not let in to port 22623, and no machine could get its"
                " configuration through it",
                "set it to the networks that the load balancer asks from",
                at="machineConfigServer.allowedNetworks",
            )
        return self


_UPDATES = ("rfc2136", "delegate")
NEEDED: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("platform.authToken", lambda tree: _at(tree, "platform.type") != "redfish"),
    (
        "platform.organizationId",
        lambda tree: bool(_at(tree, "platform.projectName")) and not _at(tree, "platform.projectId"),
    ),
    *(
        (
            f"platform.bmc.{key}",
            lambda tree, key=key: (
                _at(tree, "platform.type") == "redfish"
                and any(_unset(_at(server, f"bmc.{key}")) for server in _list(_at(tree, "platform.servers")))
            ),
        )
        for key in ("username", "password")
    ),
    *((f"dns.{key}", lambda tree: _at(tree, "dns.type") in _UPDATES) for key in ("server", "tsig.secret")),
    *((f"dns.{key}", lambda tree: _at(tree, "dns.type") == "route53") for key in ("accessKeyId", "secretAccessKey")),
    ("dns.authToken", lambda tree: _at(tree, "dns.type") == "cloudflare"),
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
"""What a real change needs and a rehearsal does not: (path, when it applies)."""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unset(value: Any) -> bool:
    return value in (None, "", REHEARSAL)


def _at(tree: Any, path: str) -> Any:
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
        for path, applies in NEEDED
        if applies(tree) and _unset(_at(tree, path))
    ]
    on_metal = _at(tree, "platform.type") != "redfish"
    if on_metal and not _at(tree, "platform.projectId") and not _at(tree, "platform.projectName"):
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
    return _not_rehearsed(parse(values, pulumi.get_stack()))


def of_tree(tree: dict[str, Any]) -> Settings:
    """Validate settings that stand elsewhere, by their names in a stack file. Raises SettingsError, as `load` does."""
    return _not_rehearsed(_validate(tree, pulumi.get_stack()))


def _not_rehearsed(settings: Settings) -> Settings:
    """Raises SettingsError where a rehearsal would change something."""
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
        tree[key] = of_json(value)
    return _validate(tree, stack)


def _validate(tree: dict[str, Any], stack: str) -> Settings:
    if found := [
        Problem(path=f"{NAMESPACE}:{path}", value=value, why=why, remedy=remedy)
        for path, value, why, remedy in unfit(tree)
    ]:
        raise SettingsError(stack, sorted(found, key=lambda problem: problem.path))
    problems = [] if tree.get("rehearsal") is True else _incomplete(tree)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        problems += describe(error, Settings)
    else:
        problems += conflicts(settings)
        if not problems:
            return settings
    unique = {(problem.path, problem.why): problem for problem in problems}
    raise SettingsError(stack, sorted(unique.values(), key=lambda problem: problem.path))
