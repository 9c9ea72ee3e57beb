"""The program of every stack: settings → assets → boot artifacts → machines → names → gates → checks → outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi

from components.boot import installer
from components.boot.host_keys import host_key
from components.boot.ipxe import BootSpec, consoles
from components.checks import node_check
from components.checks.node_check import Expectation
from components.cluster.installation import PoolInstallation
from components.cluster.pool import Access, NodePool, NodePoolArgs, PoolChecks, PoolChecksArgs
from components.endpoints import kube_vip, machine_config_access
from components.endpoints.dns import ClusterDns, ClusterDnsArgs
from components.install.asking import Login, ask
from components.install.assets import InstallAssets, InstallAssetsArgs, request_of
from components.install.bootstrap import (
    BootstrapGates,
    BootstrapGatesArgs,
    BootstrapRemoval,
    BootstrapRemovalArgs,
    cluster_credentials,
)
from components.install.earlier import Earlier, earlier
from components.install.install_config import install_config
from components.install.stage import Stage, stage, tell
from components.machines.contract import Machine, MachineArgs, Platform, Role, node_addresses
from provider.types import (
    AddressAnnounced,
    ClusterKeys,
    ClusterKeysArgs,
    Gate,
    GateArgs,
    InstallComplete,
    Mirror,
    MirrorArgs,
    NodesReady,
    Preflight,
    Provider,
    ProviderArgs,
)
from stacks import connections, mirror
from stacks.boots import Boots
from stacks.cost import cost
from stacks.installers import BOOTSTRAP_IGNITION, Prepared
from stacks.names import API_ADDRESS, Names
from stacks.platforms.registry import facility
from stacks.preflight import plan
from stacks.protection import protection
from stacks.sections.api_address import DnsRoundRobin, KubeVip
from stacks.sections.base import REHEARSAL
from stacks.sections.dns import NoDns
from stacks.service_addresses import announcing_role, service_addresses
from stacks.settings import OKD_PULL_SECRET, Settings, load
from stacks.stream import boot_artifacts
from stacks.user_data import UserData

_PROJECT = Path(__file__).resolve().parents[1]
_STABILITY_SECONDS = 30
_KEYS, _ASSETS, _BOOTSTRAP = "keys", "install-assets", "bootstrap"
"""Names by which a run finds what earlier ones left."""


def main() -> None:
    """Declare the running stack's cluster. Raises SettingsError before any resource is registered."""
    settings = load()
    for name, value in Cluster(settings, boot_spec(settings)).outputs().items():
        pulumi.export(name, value)


def boot_spec(settings: Settings) -> BootSpec:
    """What the cluster's machines boot. Reads the stream; raises StreamError."""
    return BootSpec(
        artifacts=boot_artifacts(settings),
        architecture=settings.boot.architecture,
        platform_id=facility(settings).ignition_platform,
        installs=settings.boot.install is not None,
        consoles=settings.boot.consoles,
        # RHCOS puts an installed system into FIPS mode at its first boot (openshift/os, 40rhcos-fips); a live system is
        # in it from the start, or not at all (openshift/os#1332).
        extra=(*settings.boot.kernel_arguments, *(("fips=1",) if settings.install.fips else ())),
    )


class Cluster:
    """Composes the components of one cluster; holds no logic of its own."""

    def __init__(self, settings: Settings, boot: BootSpec, parent: pulumi.Resource | None = None) -> None:
        """`parent` is what all of it belongs to; None: the stack itself."""
        self.settings, self.names, self.facility = settings, Names.of(settings), facility(settings)
        self.boot = replace(boot, artifacts=mirror.served(settings, boot.artifacts))
        self.stage = self._stage()
        ordered_again = self.stage.resumed and not settings.boot.install
        machines = frozenset[str]() if ordered_again else frozenset(self.names.control_plane)
        protected = [protection(machines)] if settings.protects else None
        child = pulumi.ResourceOptions(parent=parent, transformations=protected)
        provider = Provider(
            "metal-ipi", ProviderArgs(**connections.provider_sections(settings, boot.artifacts.iso)), child
        )
        # Components hand the provider on to their children; other resources take it from `self.ours`.
        self.ours = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(provider=provider))
        self.components = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(providers=[provider]))
        key_type = settings.install.key_type
        self.keys = ClusterKeys(_KEYS, ClusterKeysArgs(key_type=key_type if settings.install.fips else None), self.ours)
        self.access = Access(
            private_key=self.keys.private_key,
            host_key_seed=self.keys.host_key_seed,
            log_directory=str(_PROJECT / settings.install.log_directory / pulumi.get_stack()),
            host_key_type=key_type,
        )
        self.assets = self._assets()
        planned = plan(settings, boot.artifacts, pulumi.get_stack())
        checked = Preflight("preflight", planned, run=self.keys.id, opts=self.ours)
        copied = self._mirror(boot, checked) if settings.artifacts.mirror else []
        self.platform: Platform = self.facility.component(self.keys, [checked, *copied], self.components)
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
            self.boot,
            platform=self.platform,
            keys=self.keys,
            access=self.access,
            assets=self.assets,
            user_data=self.user_data,
            opts=self.ours,
        )
        self._machines()
        ordered = {**self.control_plane.machines, **self.workers.machines}
        self.cost = cost(
            settings,
            {node.split(".", 1)[0]: machine for node, machine in ordered.items()},
            pulumi.InvokeOptions(provider=provider),
        )
        self._gates()

    def _mirror(self, boot: BootSpec, after: pulumi.Resource) -> list[pulumi.Resource]:
        """Has the artifact host keep what machines boot, before there is any."""
        files = mirror.arguments(mirror.files(self.settings, boot.artifacts))
        opts = pulumi.ResourceOptions.merge(self.ours, pulumi.ResourceOptions(depends_on=[after]))
        return [Mirror("mirror", MirrorArgs(files=files, path_seed=self.keys.host_key_seed), opts)]

    def _stage(self) -> Stage:
        """How far earlier runs came; says what this one makes anew, before anything is declared."""
        found = earlier(
            assets=f"{_ASSETS}-create",
            gate=f"{_BOOTSTRAP}-complete",
            keys=_KEYS,
            control_plane=self.names.control_plane,
        )
        if self.settings.rehearsal:  # its secrets are stand-ins, and no other ones
            return Stage(formed=found.bootstrapped)
        wanted = request_of(self._assets_args(), self._install_config(found.public_key))
        reached = stage(
            found,
            wanted,
            time=datetime.now(UTC),
            ask=lambda found: ask(found.assets, self._way_in(found)),
            discarded=self.settings.install.discard,
        )
        tell(reached)
        return reached

    def _way_in(self, found: Earlier) -> Login | None:
        """How the machine is reached that was to bootstrap the cluster; None where no state has it."""
        settings = self.settings
        if self.facility.in_place:
            (node,) = self.names.control_plane
            resource, identity = f"{node}-server", installer.live_name(settings.full(node))
        else:
            resource = self.names.bootstrap
            identity = settings.full(resource)
        address = found.addresses.get(resource)
        if not address or not found.host_key_seed or not found.private_key:
            return None
        key = host_key(found.host_key_seed, identity, settings.install.key_type)
        return Login(address=address, host_key=key.public_key, private_key=found.private_key)

    def _install_config(self, key: str) -> str:
        settings = self.settings
        pull_secret = settings.install.pull_secret
        text = pull_secret.get_secret_value() if pull_secret else OKD_PULL_SECRET
        return install_config(
            cluster_name=settings.cluster_name,
            base_domain=settings.base_domain,
            architecture=settings.boot.architecture,
            control_plane=settings.control_plane.count,
            workers=settings.workers.count,
            machine_networks=self.facility.machine_networks,
            fips=settings.install.fips,
            pull_secret=text if text != REHEARSAL else OKD_PULL_SECRET,
            authorized_keys=[key, *settings.ssh.authorized_keys],
            in_place=self.facility.in_place,
        )

    def _assets_args(self, install_config: pulumi.Input[str] = "", renewal: Sequence[str] = ()) -> InstallAssetsArgs:
        settings = self.settings
        return InstallAssetsArgs(
            installer=settings.install.installer,
            version=settings.openshift_version,
            install_config=install_config,
            work_directory=str(_PROJECT / settings.install.work_directory / pulumi.get_stack()),
            in_place=self.facility.in_place,
            renewal=renewal,
        )

    def _assets(self) -> InstallAssets:
        config = self.keys.public_key.apply(self._install_config)
        return InstallAssets(_ASSETS, self._assets_args(config, self.stage.renewal), self.components)

    def _api_address(self) -> pulumi.Output[str] | None:
        """The API's own address; None where its names resolve to the machines that serve it."""
        api = self.settings.api_address
        if isinstance(api, DnsRoundRobin):
            return None
        if api.address is not None:
            return pulumi.Output.from_input(api.address)
        return self.platform.reserved[API_ADDRESS].first

    @property
    def _speaks_bgp(self) -> bool:
        """Whether the API's address is announced over BGP."""
        api = self.settings.api_address
        return isinstance(api, KubeVip) and api.mode == "bgp"

    def _machines(self) -> None:
        names = self.names
        self.prepared: dict[Role, Mapping[str, Prepared]] = {}
        self.control_plane = self._pool("control-plane", "control-plane", names.control_plane)
        self.workers = self._pool("worker", "workers", names.workers)
        self.bootstrap = None if self.facility.in_place else self._bootstrap_machine()

    def _bootstrap_machine(self) -> Machine:
        settings, name = self.settings, self.names.bootstrap
        # A server is claimed while it is off, and lent only then: what runs on it from there on is ours.
        borrowed = self.facility.lent
        claimed = [self.workers.machines[settings.full(borrowed)].resource] if borrowed else []
        return self.platform.ephemeral_machine(
            name,
            MachineArgs(
                hostname=name,
                role="bootstrap",
                boot=self.boots.bootstrap(),
                timeout=settings.timeouts.machines_active,
                announces=self._speaks_bgp,
                disposable=self.stage.disposable,
            ),
            pulumi.ResourceOptions.merge(self.ours, pulumi.ResourceOptions(depends_on=claimed)),
        )

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
                # What is installed to disk follows by being installed again: no machine is given up for that.
                disposable=self.stage.disposable and self.boots.installers is None,
            ),
            self.components,
        )

    def _installation(self, name: str, pool: NodePool) -> PoolInstallation | None:
        """What installs a pool's machines to disk; None where they run from memory."""
        if self.boots.installers is None:
            return None
        after: dict[str, list[pulumi.Resource]] = {}
        borrowed = self.facility.lent
        if pool.role == "worker" and borrowed and self.removal:
            after = {borrowed: [self.removal.resource]}
        elif self.bootstrap is None:
            # What bootstraps in place finds itself by the cluster's names.
            after = {hostname: [self.dns.records] for hostname in self.prepared[pool.role]}
        return self.boots.installers.install(
            name,
            pool,
            self.prepared[pool.role],
            credentials=cluster_credentials(self.dns, self.assets),
            checks={
                node.split(".", 1)[0]: expected.apply(node_check.script)
                for node, expected in self._expectations(pool).items()
            },
            after=after,
            disposable=self.stage.disposable,
            opts=self.components,
        )

    def _checks(self, name: str, pool: NodePool, installation: PoolInstallation | None) -> PoolChecks:
        return PoolChecks(
            name,
            PoolChecksArgs(
                pool=pool,
                access=self.access,
                expectations=self._expectations(pool, installation),
                timeout=self._until_reachable(pool),
                # Nodes configure themselves from the bootstrap machine: where it cannot be had, nobody waits for them.
                after=[
                    *(installation.installed if installation else ()),
                    *([self.bootstrap.resource] if self.bootstrap else ()),
                ],
            ),
            self.components,
        )

    def _until_reachable(self, pool: NodePool) -> int:
        """Seconds until a pool's nodes answer. Workers get their configuration from the control plane, not from the
        bootstrap machine (machine-config-operator pkg/server/bootstrap_server.go), so they wait for that as well."""
        timeouts = self.settings.timeouts
        waiting = timeouts.bootstrap_complete if pool.role == "worker" else 0
        return timeouts.machines_reachable + waiting

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
        settings, masters = self.settings, self.control_plane.machines
        bootstrap = {settings.full(self.names.bootstrap): self.bootstrap} if self.bootstrap else {}
        self.dns = ClusterDns(
            "dns",
            ClusterDnsArgs(
                domain=settings.domain,
                zone=settings.zone,
                ttl=settings.dns.ttl,
                control_plane=self.control_plane.addresses,
                workers=self.workers.addresses,
                bootstrap=next(((node, machine.public_ipv4) for node, machine in bootstrap.items()), None),
                api_address=self.api_address,
                reverse_zones=settings.dns.reverse_zones,
            ),
            self.components,
        )
        self.control_plane_installation = self._installation("control-plane-installation", self.control_plane)
        self.control_plane_checks = self._checks(
            "control-plane-checks", self.control_plane, self.control_plane_installation
        )
        self.bootstrap_complete = self._bootstrap_complete(bootstrap)
        stands = [
            self.bootstrap_complete,
            *self.control_plane_checks.passed,
            *self._served(masters, self.bootstrap_complete),
        ]
        self.removal = self._removal(stands)
        self.stands_alone = [self.removal.resource] if self.removal else stands
        """What to depend on, to come after the control plane serves the cluster by itself."""
        self.worker_checks = self.worker_installation = None
        if self.workers.machines:
            self.worker_installation = self._installation("worker-installation", self.workers)
            self.worker_checks = self._checks("worker-checks", self.workers, self.worker_installation)
        self._cluster_gates()

    def _bootstrap_complete(self, bootstrap: Mapping[str, Machine]) -> pulumi.Resource:
        """The gate behind which there is a cluster; `bootstrap` is the bootstrap machine by full name, if any."""
        timeouts, masters = self.settings.timeouts, self.control_plane.machines
        return BootstrapGates(
            _BOOTSTRAP,
            BootstrapGatesArgs(
                bootstrap=bootstrap,
                control_plane=masters,
                access=self.access,
                dns=self.dns,
                assets=self.assets,
                machine_config_networks=self._machine_config_networks([*bootstrap.values(), *masters.values()]),
                after=() if bootstrap else self.control_plane_checks.passed,
                reachable_timeout=timeouts.machines_reachable,
                api_timeout=timeouts.api_answers,
                complete_timeout=timeouts.bootstrap_complete,
            ),
            self.components,
        ).complete

    def _removal(self, after: Sequence[pulumi.Resource]) -> BootstrapRemoval | None:
        """The end of the bootstrap machine; None where there is none."""
        if self.bootstrap is None:
            return None
        return BootstrapRemoval(
            "bootstrap-removal",
            BootstrapRemovalArgs(
                machine=self.bootstrap,
                platform=self.platform.ephemeral_kind,
                dns=self.dns,
                drain_seconds=self.settings.dns.ttl,
                ignition=self.boots.bootstrap_ignition,
                ignition_files=[BOOTSTRAP_IGNITION],
                after=after,
            ),
            self.components,
        )

    def _machine_config_networks(self, machines: Sequence[Machine]) -> pulumi.Output[list[str]]:
        return machine_config_access.networks(machines, self.settings.machine_config_server.allowed_networks)

    def _served(self, masters: Mapping[str, Machine], complete: pulumi.Resource) -> list[pulumi.Resource]:
        """What the control plane must do before a bootstrap machine may go."""
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
        assert self.api_address is not None and self.bootstrap is not None, "settings have no kube-vip in place"
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
                    addresses=node_addresses(machines),
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
                pulumi.ResourceOptions(depends_on=[ready, *self.stands_alone, *checked, self.dns.ingress_records]),
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

    def outputs(self) -> dict[str, pulumi.Input[Any]]:
        """The stack's outputs, by name."""
        settings = self.settings
        nodes = [self.control_plane_checks.nodes]
        if self.worker_checks:
            nodes.append(self.worker_checks.nodes)
        address = {} if self.api_address is None else {"address": self.api_address}
        found: dict[str, pulumi.Input[Any]] = {
            "cluster": {
                "name": settings.cluster_name,
                "domain": settings.domain,
                "version": settings.openshift_version,
            },
            "api": {"url": self.dns.api_url, **address},
        }
        if self.service_addresses is not None:
            found["serviceAddresses"] = {"pools": self.service_addresses}
        if self.cost is not None:
            found["cost"] = self.cost
        if isinstance(settings.dns, NoDns):
            found["dns"] = {"needed": self.dns.needed}
        found["bootstrap"] = {"present": self.removal.present if self.removal else False}
        found["nodes"] = pulumi.Output.all(*nodes).apply(lambda parts: [node for part in parts for node in part])
        found["kubeconfig"] = self.assets.kubeconfig
        found["kubeadminPassword"] = self.assets.kubeadmin_password
        return found
