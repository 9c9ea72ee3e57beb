"""The program of every stack: settings → assets → boot artifacts → machines → names → gates → checks → outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from components.boot import installer
from components.boot.ipxe import BootSpec, consoles
from components.checks import node_check
from components.checks.node_check import Expectation
from components.cluster.installation import PoolInstallation
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
from components.machines.contract import Machine, MachineArgs, Platform, Role
from provider.types import (
    AddressAnnounced,
    ClusterKeys,
    Gate,
    GateArgs,
    InstallComplete,
    NodesReady,
    Provider,
    ProviderArgs,
)
from stacks import connections, platforms
from stacks.boots import BOOTSTRAP_IGNITION, Boots
from stacks.installers import Prepared
from stacks.names import Names
from stacks.sections.api_address import DnsRoundRobin, KubeVip
from stacks.sections.base import REHEARSAL
from stacks.sections.dns import NoDns
from stacks.service_addresses import announcing_role, service_addresses
from stacks.settings import OKD_PULL_SECRET, Settings, load
from stacks.stream import boot_artifacts
from stacks.user_data import UserData

_PROJECT = Path(__file__).resolve().parents[1]
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
        platform_id=platforms.ignition_platform(settings),
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
        self.platform: Platform = platforms.platform(settings, self.keys.public_key, self.components)
        self.api_address = self._api_address()
        self.user_data = UserData(
            settings,
            keys=self.keys,
            assets=self.assets,
            api_address=self.api_address,
            platform=self.platform,
            opts=self.ours,
        )
        self.boots = Boots(
            settings,
            boot,
            platform=self.platform,
            keys=self.keys,
            access=self.access,
            assets=self.assets,
            user_data=self.user_data,
            opts=self.ours,
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
        self.prepared: dict[Role, Mapping[str, Prepared]] = {}
        self.bootstrap: Machine = self.platform.ephemeral_machine(
            names.bootstrap,
            MachineArgs(
                hostname=names.bootstrap,
                role="bootstrap",
                boot=self.boots.bootstrap(),
                timeout=settings.timeouts.machines_active,
                announces=self._speaks_bgp,
            ),
            self.ours,
        )
        self.control_plane = self._pool("control-plane", "control-plane", names.control_plane)
        self.workers = self._pool("worker", "workers", names.workers)

    def _pool(self, role: Role, name: str, hostnames: tuple[str, ...]) -> NodePool:
        boots = self.boots.pool(role, name, hostnames)
        self.prepared[role] = boots.prepared
        announces = (role == "control-plane" and self._speaks_bgp) or role == announcing_role(self.settings)
        return NodePool(
            name,
            NodePoolArgs(
                platform=self.platform,
                role=role,
                hostnames=hostnames,
                domain=self.settings.domain,
                boots=boots.boots,
                announces=announces,
                active_timeout=self.settings.timeouts.machines_active,
            ),
            self.components,
        )

    def _installation(self, name: str, pool: NodePool) -> PoolInstallation | None:
        """What installs a pool's machines to disk; None where they run from memory."""
        if self.boots.installers is None:
            return None
        borrowed = platforms.lent(self.settings)
        return self.boots.installers.install(
            name,
            pool,
            self.prepared[pool.role],
            credentials=cluster_credentials(self.dns, self.assets),
            checks={
                node.split(".", 1)[0]: expected.apply(node_check.script)
                for node, expected in self._expectations(pool).items()
            },
            after={borrowed: [self.removal.resource]} if pool.role == "worker" and borrowed else {},
            opts=self.components,
        )

    def _checks(self, name: str, pool: NodePool, installation: PoolInstallation | None) -> PoolChecks:
        return PoolChecks(
            name,
            PoolChecksArgs(
                pool=pool,
                access=self.access,
                expectations=self._expectations(pool, installation),
                timeout=self.settings.timeouts.machines_reachable,
                after=installation.installed if installation else (),
            ),
            self.components,
        )

    def _expectations(
        self, pool: NodePool, installation: PoolInstallation | None = None
    ) -> dict[str, pulumi.Output[Expectation]]:
        """What the nodes of a pool must be, by full name; one that was left as it is, is no more than what it runs."""
        prepared = self.prepared[pool.role]

        def expected(node: str) -> Callable[[list[Any]], Expectation]:
            hostname = node.split(".", 1)[0]
            kargs = self.settings.kernel_arguments(hostname.removeprefix(f"{self.settings.cluster_name}-"))
            wanted = tuple(f"console={console}" for console in consoles(self.boot))
            if prepared:
                wanted = (*(f"console={installer.persisted_console(each)}" for each in consoles(self.boot)), *kargs)

            def expectation(found: list[Any]) -> Expectation:
                public_ipv4, private_ipv4, generation, runs = found
                kept = generation != runs
                return Expectation(
                    hostname=node,
                    metadata_hostname=hostname,
                    public_ipv4=public_ipv4,
                    private_ipv4=private_ipv4,
                    platform_id=self.boot.platform_id,
                    release=None if kept else self.boot.artifacts.release,
                    kernel_arguments=() if kept else wanted,
                    generation=runs,
                )

            return expectation

        def outputs(node: str, machine: Machine) -> pulumi.Output[list[Any]]:
            installed = prepared.get(node.split(".", 1)[0])
            generation = installed.system.generation if installed else None
            keeps = pool.role == "control-plane" and self.settings.reprovision.control_plane == "keep"
            runs = installation.generations[node] if installation and keeps else generation
            return pulumi.Output.all(machine.public_ipv4, machine.private_ipv4, generation, runs)

        return {node: outputs(node, machine).apply(expected(node)) for node, machine in pool.machines.items()}

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
        self.control_plane_installation = self._installation("control-plane-installation", self.control_plane)
        self.control_plane_checks = self._checks(
            "control-plane-checks", self.control_plane, self.control_plane_installation
        )
        self.served = self._served(masters, bootstrap.complete)
        self.removal = BootstrapRemoval(
            "bootstrap-removal",
            BootstrapRemovalArgs(
                machine=self.bootstrap,
                platform=self.platform.kind,
                dns=self.dns,
                drain_seconds=settings.dns.ttl,
                ignition=self.boots.bootstrap_ignition,
                ignition_files=[BOOTSTRAP_IGNITION],
                after=[bootstrap.complete, *self.control_plane_checks.passed, *self.served],
            ),
            self.components,
        )
        self.worker_checks = self.worker_installation = None
        if self.workers.machines:
            self.worker_installation = self._installation("worker-installation", self.workers)
            self.worker_checks = self._checks("worker-checks", self.workers, self.worker_installation)
        self._cluster_gates()

    def _machine_config_networks(self, machines: Sequence[Machine]) -> pulumi.Output[list[str]]:
        return machine_config_access.networks(machines, self.settings.machine_config_server.allowed_networks)

    def _served(self, masters: Mapping[str, Machine], complete: pulumi.Resource) -> list[pulumi.Resource]:
        """What the control plane must do before the bootstrap machine may go."""
        reachable, installation = self.control_plane_checks.reachable, self.control_plane_installation
        gate = machine_config_access.gate(
            "machine-config-access",
            masters,
            access=self.access,
            allowed=self._machine_config_networks([*masters.values(), *self.workers.machines.values()]),
            timeout=self.settings.timeouts.machines_reachable,
            address=self.api_address,
            triggers=list(installation.generations.values()) if installation else (),
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
            pulumi.ResourceOptions.merge(
                self.ours,
                pulumi.ResourceOptions(
                    depends_on=[
                        self.bootstrap_complete,
                        # One may be installed only when the bootstrap machine has given its server back.
                        *(self.worker_installation.installed if self.worker_installation else ()),
                    ]
                ),
            ),
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
