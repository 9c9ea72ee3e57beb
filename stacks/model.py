"""The settings of a stack: one validated tree. `stacks.settings` reads it, `stacks.conflicts` finds contradictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, get_args

from pydantic import Field, PrivateAttr, model_validator

from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.platforms.ironic.settings import Ironic
from metal_ipi.stacks.platforms.listed.settings import MACHINE_NAME, SECTIONS
from metal_ipi.stacks.platforms.redfish.settings import Redfish
from metal_ipi.stacks.platforms.section import OfMachine, PlatformSection, at, items
from metal_ipi.stacks.sections.api_address import (
    DnsIngress,
    DnsRoundRobin,
    ExternalApi,
    ExternalIngress,
    KubeVip,
    KubeVipIngress,
    MachineConfigServer,
    PlatformApi,
    PlatformIngress,
)
from metal_ipi.stacks.sections.artifacts import S3Artifacts, SshArtifacts
from metal_ipi.stacks.sections.base import Section, wrong
from metal_ipi.stacks.sections.boot import Boot
from metal_ipi.stacks.sections.cluster_api import ClusterApi
from metal_ipi.stacks.sections.day_two import DayTwo
from metal_ipi.stacks.sections.devices import DeviceRule
from metal_ipi.stacks.sections.dns import Cloudflare, Delegate, Lexicon, NoDns, Rfc2136, Route53
from metal_ipi.stacks.sections.forms import BaseDomain, ClusterName, PoolName, Release
from metal_ipi.stacks.sections.install import Install, Lab, Ssh, Timeouts
from metal_ipi.stacks.sections.install_config import InstallConfig
from metal_ipi.stacks.sections.machine_config import MachineConfigs
from metal_ipi.stacks.sections.machines import Arbiter, ControlPlane, Reprovision, WorkerPool, Workers
from metal_ipi.stacks.sections.node_marks import Taint, over
from metal_ipi.stacks.sections.preflight import Cost, Preflight
from metal_ipi.stacks.sections.service_addresses import NoServiceAddresses, ServiceAddresses

Platform = EquinixMetal | Redfish | Ironic
PLATFORMS: Mapping[str, type[PlatformSection]] = {
    each.model_fields["type"].default: each for each in get_args(Platform)
}
"""The sections of all platforms, by type."""


class Settings(Section):
    """All settings of one stack."""

    cluster_name: ClusterName = Field(description="the first label of the cluster's domain")
    base_domain: BaseDomain = Field(description="the parent domain: the cluster's domain is <clusterName>.<baseDomain>")
    openshift_version: Release = Field(description="the OpenShift or OKD release to install, e.g. 4.21.3")
    platform: Annotated[Platform, Field(discriminator="type")] = Field(description="where the machines come from")
    control_plane: ControlPlane = Field(default_factory=ControlPlane, description="the control plane machines")
    arbiter: Arbiter = Field(default_factory=Arbiter, description="the arbiter of a control plane of two")
    workers: Workers = Field(default_factory=Workers, description="the workers")
    boot: Boot = Field(default_factory=Boot, description="what the machines boot")
    reprovision: Reprovision = Field(
        default_factory=Reprovision, description="how machines are installed anew when what they run has changed"
    )
    dns: Annotated[
        Rfc2136 | Route53 | Cloudflare | Lexicon | Delegate | NoDns,
        Field(discriminator="type"),
    ] = Field(description="where the cluster's names are kept")
    api_address: Annotated[DnsRoundRobin | KubeVip | ExternalApi | PlatformApi, Field(discriminator="type")] = Field(
        default_factory=DnsRoundRobin, description="how the API is reached"
    )
    ingress_address: Annotated[
        DnsIngress | KubeVipIngress | ExternalIngress | PlatformIngress, Field(discriminator="type")
    ] = Field(default_factory=DnsIngress, description="how what the cluster serves is reached (`*.apps`)")
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
    install_config: InstallConfig = Field(
        default_factory=InstallConfig, description="fields of install-config.yaml, under the installer's own names"
    )
    machine_config: MachineConfigs = Field(
        default_factory=MachineConfigs, description="what nodes have from their first boot on"
    )
    day_two: DayTwo = Field(
        default_factory=DayTwo, description="what is installed when the cluster is complete: operators, image registry"
    )
    ssh: Ssh = Field(default_factory=Ssh, description="who may log in to the nodes")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="how long each gate waits, seconds")
    preflight: Preflight = Field(
        default_factory=Preflight, description="how the stack is checked before anything is ordered"
    )
    cost: Cost = Field(default_factory=Cost, description="where prices are from")
    cluster_api: ClusterApi | None = Field(
        default=None, description="the hub whose Cluster API installs the cluster; not set: `up` does it itself"
    )
    protect: bool | None = Field(
        default=None,
        description=(
            "true: keys, project, reserved addresses, control plane machines and the objects of a cluster on a "
            "hub are neither deleted nor replaced; not set: true"
        ),
    )
    pool: PoolName | None = Field(
        default=None,
        description="the name of the pool, in the stack of a pool only; `make` sets it, do not set it yourself",
    )
    lab: Lab | None = Field(
        default=None,
        description="set only for stacks that run in the lab; read by the command line, not by the program",
    )
    rehearsal: bool = Field(
        default=False, description="true: an offline preview, with placeholders for missing secrets"
    )
    _own: tuple[str, ...] | None = PrivateAttr(default=None)

    @property
    def domain(self) -> str:
        """The cluster's domain, in which all names of the cluster end."""
        return f"{self.cluster_name}.{self.base_domain}"

    @property
    def protects(self) -> bool:
        """Whether irreplaceable resources are protected; policies require that of every facility."""
        return self.protect is not False

    def full(self, hostname: str) -> str:
        """The full name of a machine."""
        return f"{hostname}.{self.domain}"

    @property
    def platform_vips(self) -> tuple[str, str] | None:
        """The addresses of API and ingress that OpenShift's platform baremetal announces; None: the platform is none or
        external."""
        api, ingress = self.api_address, self.ingress_address
        if not isinstance(api, PlatformApi) or not isinstance(ingress, PlatformIngress):
            return None
        return api.address, ingress.address

    @property
    def named_addresses(self) -> dict[str, str]:
        """The addresses of API and ingress in the settings, by path."""
        return {path: address for path, (_, address) in self._addresses.items()}

    @property
    def kept_addresses(self) -> dict[str, str]:
        """Those addresses that the cluster's own machines announce, so that nothing else may have them."""
        return {path: address for path, (kind, address) in self._addresses.items() if kind != "external"}

    @property
    def _addresses(self) -> dict[str, tuple[str, str]]:
        """Type of the section and address, by path."""
        sections = {"apiAddress": self.api_address, "ingressAddress": self.ingress_address}
        named = {
            f"{path}.{name}": (section.type, getattr(section, attribute, None))
            for path, section in sections.items()
            for name, attribute in (("address", "address"), ("ipv6Address", "ipv6_address"))
        }
        return {path: (kind, address) for path, (kind, address) in named.items() if address is not None}

    @property
    def asks_registries(self) -> bool:
        """Whether preflight asks registries for the release's images."""
        asked = self.preflight.images
        return bool(self.install_config.image_digest_sources) if asked is None else asked

    @property
    def zone(self) -> str | None:
        """The DNS zone of the records; None if this program manages no zone."""
        return None if isinstance(self.dns, NoDns) else self.dns.zone or self.base_domain

    @property
    def machines(self) -> tuple[str, ...]:
        """The permanent machines, by name within the cluster: control-plane-0, ..., arbiter-0, worker-0, ...

        Those of the whole facility, or of one stack of it (`stacks.pools.splitting`).
        """
        if self._own is not None:
            return self._own
        counted = self.platform.machines({role: section.count for role, section in self._roles.items()})
        return tuple(dict.fromkeys((*counted, *chain.from_iterable(map(self.of_pool, self.workers.pools)))))

    def of_pool(self, pool: WorkerPool) -> tuple[str, ...]:
        """The names of a pool's machines."""
        return self.platform.machines_of(f"worker-{number}" for number in range(pool.first, pool.first + pool.count))

    def narrowed(self, machines: tuple[str, ...], workers: Workers, pool: str | None = None) -> Settings:
        """The settings of a stack that has only these machines: a pool's stack, or the cluster's own stack."""
        platform = self.platform.narrowed(frozenset(machines), pool)
        result = self.model_copy(update={"platform": platform, "workers": workers, "pool": pool})
        result._own = machines
        return result

    @property
    def _roles(self) -> Mapping[str, ControlPlane | Arbiter | Workers]:
        return {"control-plane": self.control_plane, "arbiter": self.arbiter, "worker": self.workers}

    @property
    def minor(self) -> int:
        """The minor version: 19 for release 4.19.0."""
        return int(self.openshift_version.split(".")[1])

    def lacks(self, capability: str) -> bool:
        """Whether the cluster is installed without one of OpenShift's optional capabilities."""
        given = self.install_config.capabilities
        return given is not None and given.lacks(capability, minor=self.minor)

    def of_machine(self, machine: str) -> OfMachine:
        """The settings of a machine (`worker-0`) in the platform's section."""
        return self.platform.of_machine(machine)

    @property
    def given_kernel_arguments(self) -> Iterator[tuple[str, str]]:
        """Each kernel argument in the settings, with its path."""
        for path, arguments in (
            ("boot.kernelArguments", self.boot.kernel_arguments),
            ("controlPlane.kernelArguments", self.control_plane.kernel_arguments),
            ("arbiter.kernelArguments", self.arbiter.kernel_arguments),
            ("workers.kernelArguments", self.workers.kernel_arguments),
            *(
                (f"workers.pools[{index}].kernelArguments", pool.kernel_arguments)
                for index, pool in enumerate(self.workers.pools)
            ),
            *((f"platform.{path}", arguments) for path, arguments in self.platform.given_kernel_arguments()),
        ):
            for index, argument in enumerate(arguments):
                yield f"{path}[{index}]", argument

    def kernel_arguments(self, machine: str) -> tuple[str, ...]:
        """The kernel arguments of a machine (`worker-0`): those for all machines, for its role, and its own."""
        own = self.of_machine(machine).kernel_arguments
        return (*self.boot.kernel_arguments, *self._role(machine).kernel_arguments, *own)

    def labels(self, machine: str) -> dict[str, str]:
        """The labels of a machine's (`worker-0`) node: its role's, overridden by its own."""
        return {**self._role(machine).labels, **self.of_machine(machine).labels}

    def taints(self, machine: str) -> tuple[Taint, ...]:
        """The taints of a machine's (`worker-0`) node: its role's, overridden by its own with the same key and
        effect."""
        return over(self.of_machine(machine).taints, self._role(machine).taints)

    def _role(self, machine: str) -> ControlPlane | Arbiter | Workers:
        return self._roles[machine.rpartition("-")[0]]

    def install_device(self, machine: str) -> DeviceRule:
        """The rule for the disk to which a machine (`worker-0`) is installed. Only if `boot.install` is set."""
        assert self.boot.install is not None
        return self.of_machine(machine).install_device or self.boot.install.device

    def wipe_disks(self, machine: str) -> tuple[DeviceRule, ...]:
        """The rules for other disks of a machine (`worker-0`) to empty. Only if `boot.install` is set."""
        assert self.boot.install is not None
        own = self.of_machine(machine).wipe_disks
        return self.boot.install.wipe_disks if own is None else own

    @model_validator(mode="before")
    @classmethod
    def _listed_machines(cls, tree: Any) -> Any:
        """Set the number of machines of each role from the list of servers."""
        names = [at(server, "name") for server in items(at(tree, "platform.servers"))]
        roles = [match[1] for name in names if isinstance(name, str) and (match := MACHINE_NAME.fullmatch(name))]
        if not roles or len(roles) < len(names):
            return tree  # no servers, or an invalid name, which another validator reports
        counted = {section: roles.count(role) for role, section in SECTIONS.items()}
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
        if isinstance(self.api_address, ExternalApi) and not self.machine_config_server.allowed_networks:
            raise wrong(
                "port 22623 is closed to the load balancer's own addresses, so no machine could get its configuration "
                "through it",
                "set it to the networks from which the load balancer connects",
                at="machineConfigServer.allowedNetworks",
            )
        return self
