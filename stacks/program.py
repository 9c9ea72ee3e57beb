"""The program of every stack: settings → assets → boot artifacts → machines → names → gates → checks → outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pulumi

from components.boot import ignition
from components.boot.ipxe import BootSpec, consoles, script
from components.cluster.pool import Access, NodePool, NodePoolArgs, PoolChecks, PoolChecksArgs
from components.endpoints import kube_vip, machine_config_access
from components.endpoints.dns import ClusterDns, ClusterDnsArgs
from components.install.assets import InstallAssets, InstallAssetsArgs
from components.install.bootstrap import (
    BootstrapGates,
    BootstrapGatesArgs,
    BootstrapRemoval,
    BootstrapRemovalArgs,
    cluster_credentials,
)
from components.install.install_config import install_config
from components.machines.contract import Boot, Machine, MachineArgs, Platform, Role
from components.machines.equinix_metal import EquinixMetal, EquinixMetalArgs
from provider.types import (
    AddressAnnounced,
    Artifacts,
    ArtifactsArgs,
    ClusterKeys,
    Gate,
    GateArgs,
    InstallComplete,
    NodesReady,
    Provider,
    ProviderArgs,
)
from stacks import connections
from stacks.names import Names
from stacks.sections.api_address import DnsRoundRobin, KubeVip
from stacks.sections.base import REHEARSAL
from stacks.sections.dns import NoDns
from stacks.sections.machines import EquinixMetal as EquinixMetalSettings
from stacks.service_addresses import announcing_role, service_addresses
from stacks.settings import OKD_PULL_SECRET, Settings, load
from stacks.stream import boot_artifacts
from stacks.user_data import UserData

_PROJECT = Path(__file__).resolve().parents[1]
_BOOTSTRAP_IGNITION = "bootstrap.ign"
_STABILITY_SECONDS = 30


def main() -> None:
    """Declare the running stack's cluster. Raises SettingsError before any resource is registered."""
    settings = load()
    boot = _boot_spec(settings)
    Cluster(settings, boot).export()


def _boot_spec(settings: Settings) -> BootSpec:
    return BootSpec(
        artifacts=boot_artifacts(settings),
        architecture=settings.boot.architecture,
        platform_id=EquinixMetal.ignition_platform,
        installs=settings.boot.install is not None,
        consoles=settings.boot.consoles,
        extra=settings.boot.kernel_arguments,
    )


class Cluster:
    """Composes the components of one cluster; holds no logic of its own."""

    def __init__(self, settings: Settings, boot: BootSpec) -> None:
        self.settings, self.boot, self.names = settings, boot, Names.of(settings)
        provider = Provider("metal-ipi", ProviderArgs(**connections.provider_sections(settings)))
        # Components hand the provider on to their children; resources without parent take it from `self.ours`.
        self.ours = pulumi.ResourceOptions(provider=provider)
        self.components = pulumi.ResourceOptions(providers=[provider])
        self.keys = ClusterKeys("keys", opts=self.ours)
        self.access = Access(
            private_key=self.keys.private_key,
            host_key_seed=self.keys.host_key_seed,
            log_directory=str(_PROJECT / settings.install.log_directory / pulumi.get_stack()),
        )
        self.assets = self._assets()
        self.platform: Platform = self._platform()
        self.scripts = Artifacts(
            "boot-scripts",
            ArtifactsArgs(files={"node.ipxe": script(boot)}, path_seed=self.keys.host_key_seed),
            self.ours,
        )
        self.api_address = self._api_address()
        self.user_data = UserData(
            settings,
            keys=self.keys,
            assets=self.assets,
            api_address=self.api_address,
            metadata_url=self.platform.metadata_url,
            opts=self.ours,
        )
        self.bootstrap_ignition = Artifacts(
            "bootstrap-ignition",
            ArtifactsArgs(
                files={_BOOTSTRAP_IGNITION: self.assets.bootstrap},
                path_seed=self.keys.host_key_seed,
                ephemeral=True,
            ),
            self.ours,
        )
        self._machines()
        self._gates()

    def _assets(self) -> InstallAssets:
        settings = self.settings
        pull_secret = settings.install.pull_secret
        text = pull_secret.get_secret_value() if pull_secret else OKD_PULL_SECRET
        config = self.keys.public_key.apply(
            lambda key: install_config(
                cluster_name=settings.cluster_name,
                base_domain=settings.base_domain,
                architecture=settings.boot.architecture,
                control_plane=settings.control_plane.count,
                pull_secret=text if text != REHEARSAL else OKD_PULL_SECRET,
                authorized_keys=[key, *settings.ssh.authorized_keys],
            )
        )
        return InstallAssets(
            "install-assets",
            InstallAssetsArgs(
                installer=settings.install.installer,
                version=settings.openshift_version,
                install_config=config,
                work_directory=str(_PROJECT / settings.install.work_directory / pulumi.get_stack()),
            ),
        )

    def _platform(self) -> EquinixMetal:
        metal = self.settings.platform
        assert isinstance(metal, EquinixMetalSettings)
        return EquinixMetal(
            "platform",
            EquinixMetalArgs(
                stack=pulumi.get_stack(),
                cluster=self.settings.domain,
                auth_token=connections.auth_token(metal),
                project_id=connections.project_id(self.settings, metal),
                project_name=metal.project_name,
                organization_id=metal.organization_id,
                metro=metal.metro,
                facility=metal.facility,
                plans={
                    "bootstrap": metal.bootstrap_plan,
                    "control-plane": metal.control_plane_plan,
                    "worker": metal.worker_plan,
                },
                ssh_public_key=self.keys.public_key,
            ),
        )

    def _api_address(self) -> pulumi.Output[str] | None:
        """The API's own address; None where its names resolve to the machines that serve it."""
        api = self.settings.api_address
        if isinstance(api, DnsRoundRobin):
            return None
        if api.address is not None:
            return pulumi.Output.from_input(api.address)
        return self.platform.reserve_address("api-address")

    @property
    def _speaks_bgp(self) -> bool:
        """Whether the API's address is announced over BGP."""
        api = self.settings.api_address
        return isinstance(api, KubeVip) and api.mode == "bgp"

    def _machines(self) -> None:
        settings, names = self.settings, self.names
        bootstrap_source = pulumi.Output.all(self.bootstrap_ignition.urls, self.bootstrap_ignition.hashes).apply(
            lambda found: ignition.Source(url=found[0][_BOOTSTRAP_IGNITION], hash=found[1][_BOOTSTRAP_IGNITION])
        )
        # The script holds no secret, and neither do URLs of its directory: previews may show it.
        script_url = pulumi.Output.unsecret(self.scripts.boot_urls.apply(lambda urls: urls["node.ipxe"]))
        self.bootstrap: Machine = self.platform.ephemeral_machine(
            names.bootstrap,
            MachineArgs(
                hostname=names.bootstrap,
                role="bootstrap",
                boot=Boot(
                    ipxe_script_url=script_url,
                    user_data=self.user_data.of(names.bootstrap, bootstrap_source, serves=True),
                    always_pxe=self.boot.always_pxe,
                ),
                timeout=settings.timeouts.machines_active,
                announces=self._speaks_bgp,
            ),
            self.ours,
        )
        self.control_plane = self._pool("control-plane", names.control_plane, "master", script_url)
        self.workers = self._pool("worker", names.workers, "worker", script_url)

    def _pool(self, role: Role, hostnames: tuple[str, ...], config: str, script_url: pulumi.Output[str]) -> NodePool:
        source = ignition.Source(url=f"https://api-int.{self.settings.domain}:22623/config/{config}")
        serves, routes = role == "control-plane", role == announcing_role(self.settings)
        return NodePool(
            "control-plane" if role == "control-plane" else "workers",
            NodePoolArgs(
                platform=self.platform,
                role=role,
                hostnames=hostnames,
                domain=self.settings.domain,
                ipxe_script_url=script_url,
                user_data={
                    hostname: self.user_data.of(hostname, source, serves=serves, routes=routes)
                    for hostname in hostnames
                },
                announces=(serves and self._speaks_bgp) or routes,
                always_pxe=self.boot.always_pxe,
                active_timeout=self.settings.timeouts.machines_active,
            ),
            self.components,
        )

    def _checks(self, name: str, pool: NodePool) -> PoolChecks:
        return PoolChecks(
            name,
            PoolChecksArgs(
                pool=pool,
                access=self.access,
                platform_id=self.boot.platform_id,
                release=self.boot.artifacts.release,
                kernel_arguments=tuple(f"console={console}" for console in consoles(self.boot)),
                timeout=self.settings.timeouts.machines_reachable,
            ),
            self.components,
        )

    def _gates(self) -> None:
        settings, timeouts = self.settings, self.settings.timeouts
        bootstrap_node, masters = self.settings.full(self.names.bootstrap), self.control_plane.machines
        self.dns = ClusterDns(
            "dns",
            ClusterDnsArgs(
                domain=settings.domain,
                zone=settings.zone,
                ttl=settings.dns.ttl,
                control_plane=self.control_plane.addresses,
                workers=self.workers.addresses,
                bootstrap=(bootstrap_node, self.bootstrap.public_ipv4),
                api_address=self.api_address,
                reverse_zones=settings.dns.reverse_zones,
            ),
            self.components,
        )
        bootstrap = BootstrapGates(
            "bootstrap",
            BootstrapGatesArgs(
                node=bootstrap_node,
                machine=self.bootstrap,
                control_plane=masters,
                access=self.access,
                dns=self.dns,
                assets=self.assets,
                machine_config_networks=self._machine_config_networks([self.bootstrap, *masters.values()]),
                reachable_timeout=timeouts.machines_reachable,
                api_timeout=timeouts.api_answers,
                complete_timeout=timeouts.bootstrap_complete,
            ),
            self.components,
        )
        self.bootstrap_complete = bootstrap.complete
        self.control_plane_checks = self._checks("control-plane-checks", self.control_plane)
        self.served = self._served(masters, bootstrap.complete)
        self.removal = BootstrapRemoval(
            "bootstrap-removal",
            BootstrapRemovalArgs(
                machine=self.bootstrap,
                dns=self.dns,
                drain_seconds=settings.dns.ttl,
                ignition=self.bootstrap_ignition,
                ignition_files=[_BOOTSTRAP_IGNITION],
                after=[bootstrap.complete, *self.control_plane_checks.passed, *self.served],
            ),
            self.components,
        )
        self.worker_checks = self._checks("worker-checks", self.workers) if self.workers.machines else None
        self._cluster_gates()

    def _machine_config_networks(self, machines: Sequence[Machine]) -> pulumi.Output[list[str]]:
        return machine_config_access.networks(machines, self.settings.machine_config_server.allowed_networks)

    def _served(self, masters: Mapping[str, Machine], complete: pulumi.Resource) -> list[pulumi.Resource]:
        """What the control plane must do before the bootstrap machine may go."""
        reachable = self.control_plane_checks.reachable
        gate = machine_config_access.gate(
            "machine-config-access",
            masters,
            access=self.access,
            allowed=self._machine_config_networks([*masters.values(), *self.workers.machines.values()]),
            timeout=self.settings.timeouts.machines_reachable,
            address=self.api_address,
            opts=pulumi.ResourceOptions.merge(self.ours, pulumi.ResourceOptions(depends_on=[reachable])),
        )
        api = self.settings.api_address
        if not isinstance(api, KubeVip):
            return [gate]
        assert self.api_address is not None
        announced = Gate(
            "api-address-announced",
            GateArgs(
                spec=AddressAnnounced(
                    logs=self.access.logs(masters),
                    leaving=self.access.logs({self.settings.full(self.names.bootstrap): self.bootstrap}),
                    address=self.api_address,
                    mode=api.mode,
                    program=kube_vip.PROGRAM,
                ),
                timeout_seconds=self.settings.timeouts.install_complete,
            ),
            pulumi.ResourceOptions.merge(self.ours, pulumi.ResourceOptions(depends_on=[complete])),
        )
        return [gate, announced]

    def _cluster_gates(self) -> None:
        timeouts = self.settings.timeouts
        credentials = cluster_credentials(self.dns, self.assets)
        machines = {**self.control_plane.machines, **self.workers.machines}
        logs = self.access.logs(machines)
        ready = Gate(
            "nodes-ready",
            GateArgs(
                spec=NodesReady(
                    credentials=credentials,
                    names=list(machines),
                    addresses={name: [m.public_ipv4, m.private_ipv4] for name, m in machines.items()},
                    logs=logs,
                ),
                timeout_seconds=timeouts.nodes_ready,
                gives_up_with=[self.worker_checks.reachable_gate] if self.worker_checks else [],
            ),
            # From here on the API is the control plane's: nodes join while others are checked, bootstrap's goes away.
            pulumi.ResourceOptions.merge(self.ours, pulumi.ResourceOptions(depends_on=[self.bootstrap_complete])),
        )
        checked = self.worker_checks.passed if self.worker_checks else []
        complete = Gate(
            "install-complete",
            GateArgs(
                spec=InstallComplete(credentials=credentials, logs=logs),
                timeout_seconds=timeouts.install_complete,
                stability_seconds=_STABILITY_SECONDS if not self.settings.lab else 1,
            ),
            pulumi.ResourceOptions.merge(
                self.ours,
                pulumi.ResourceOptions(depends_on=[ready, self.removal.resource, *checked, self.dns.ingress_records]),
            ),
        )
        self.service_addresses = service_addresses(
            self.settings,
            platform=self.platform,
            announcing=(self.workers if self.workers.machines else self.control_plane).machines,
            kubeconfig=self.assets.kubeconfig,
            after=[complete],
            cluster=self.keys,
            opts=self.components,
        )

    def export(self) -> None:
        """The stack's outputs."""
        settings = self.settings
        nodes = [self.control_plane_checks.nodes]
        if self.worker_checks:
            nodes.append(self.worker_checks.nodes)
        pulumi.export(
            "cluster",
            {"name": settings.cluster_name, "domain": settings.domain, "version": settings.openshift_version},
        )
        address = {} if self.api_address is None else {"address": self.api_address}
        pulumi.export("api", {"url": self.dns.api_url, **address})
        if self.service_addresses is not None:
            pulumi.export("serviceAddresses", {"pools": self.service_addresses})
        if isinstance(settings.dns, NoDns):
            pulumi.export("dns", {"needed": self.dns.needed})
        pulumi.export("bootstrap", {"present": self.removal.present})
        pulumi.export("nodes", pulumi.Output.all(*nodes).apply(lambda parts: [node for part in parts for node in part]))
        pulumi.export("kubeconfig", self.assets.kubeconfig)
        pulumi.export("kubeadminPassword", self.assets.kubeadmin_password)
