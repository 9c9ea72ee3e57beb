"""The steps of the program. Each declares one thing, from the settings and from what was declared before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.checks import node_check
from metal_ipi.components.cluster.installation import PoolInstallation
from metal_ipi.components.cluster.pool import NodePool, NodePoolArgs, PoolChecks, PoolChecksArgs
from metal_ipi.components.endpoints import machine_config_access
from metal_ipi.components.endpoints.dns import ClusterDns, ClusterDnsArgs
from metal_ipi.components.install.bootstrap import (
    BootstrapGates,
    BootstrapGatesArgs,
    BootstrapRemoval,
    BootstrapRemovalArgs,
)
from metal_ipi.components.machines.contract import LastingMachine, Machine, MachineArgs, node_addresses
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import ClusterCredentials, Gate, GateArgs, InstallComplete, NodesReady
from metal_ipi.stacks import api_address, assets, checks
from metal_ipi.stacks.base import Base, ClusterBase
from metal_ipi.stacks.boot_files import BootFiles, PoolBoot
from metal_ipi.stacks.installers import BOOTSTRAP_IGNITION
from metal_ipi.stacks.service_addresses import announcing_role

_BEFORE_GROWTH = 3
"""A control plane with more machines than this may have been enlarged."""


@dataclass(frozen=True, kw_only=True)
class OrderedPool:
    """The machines of one role, and what they boot."""

    pool: NodePool
    boot: PoolBoot

    @property
    def machines(self) -> Mapping[Node, LastingMachine]:
        """The machines."""
        return self.pool.machines


def ordered_pool(base: Base, files: BootFiles, role: Role, name: str, nodes: tuple[Node, ...]) -> OrderedPool:
    """Declare the machines of a role."""
    boot = files.pool(role, name, nodes)
    serves_over_bgp = role == "control-plane" and api_address.speaks_bgp(base.settings)
    serves_over_bgp = serves_over_bgp or api_address.speaks_bgp_for_ingress(base.settings, base.stage, role)
    pool = NodePool(
        name,
        NodePoolArgs(
            platform=base.platform,
            role=role,
            nodes=nodes,
            boots=boot.machines,
            announces=serves_over_bgp or role == announcing_role(base.settings),
            active_timeout=base.settings.timeouts.machines_active,
            # A machine that is installed to disk is not replaced: it is installed again.
            disposable=base.stage.disposable and files.installers is None,
        ),
        base.components,
    )
    return OrderedPool(pool=pool, boot=boot)


def bootstrap_machine(base: Base, files: BootFiles, workers: Mapping[Node, LastingMachine]) -> dict[Node, Machine]:
    """Declare the bootstrap machine; empty if the only machine bootstraps itself."""
    if base.site.in_place:
        return {}
    node, lent = base.nodes.bootstrap, base.site.lent
    # A server is claimed while it is off, and lent only after that. So everything that runs on it from then on is ours.
    claimed = [workers[lent].resource] if lent else []
    machine = base.platform.ephemeral_machine(
        node.hostname,
        MachineArgs(
            node=node,
            boot=files.bootstrap(),
            timeout=base.settings.timeouts.machines_active,
            announces=api_address.speaks_bgp(base.settings),
            disposable=base.stage.disposable,
        ),
        pulumi.ResourceOptions.merge(base.ours, pulumi.ResourceOptions(depends_on=claimed)),
    )
    return {node: machine}


def cluster_dns(
    base: Base,
    control_plane: OrderedPool,
    arbiters: Mapping[Node, LastingMachine],
    workers: OrderedPool,
    bootstrap: Mapping[Node, Machine],
) -> ClusterDns:
    """Declare the cluster's DNS names."""
    settings = base.settings
    machines: Mapping[Node, Machine] = {**control_plane.machines, **arbiters, **workers.machines, **bootstrap}
    ipv6 = {node: machine.ipv6 for node, machine in machines.items()}
    return ClusterDns(
        "dns",
        ClusterDnsArgs(
            domain=settings.domain,
            zone=settings.zone,
            ttl=settings.dns.ttl,
            control_plane=control_plane.pool.addresses,
            arbiters={node.fqdn: machine.public_ipv4 for node, machine in arbiters.items()},
            workers=workers.pool.addresses,
            schedulable=base.stage.schedulable,
            bootstrap=next(((node.fqdn, machine.public_ipv4) for node, machine in bootstrap.items()), None),
            api_address=base.api_address,
            ingress_address=base.ingress_address,
            ipv6={**api_address.ipv6(settings), **{node.fqdn: found for node, found in ipv6.items() if found}},
            reverse_zones=settings.dns.reverse_zones,
        ),
        base.components,
    )


def installation(
    base: Base,
    files: BootFiles,
    name: str,
    pool: OrderedPool,
    credentials: ClusterCredentials,
    *,
    after: Mapping[Node, Sequence[pulumi.Resource]],
) -> PoolInstallation | None:
    """Declare the installation of a pool's machines to disk; None if they run from memory."""
    if files.installers is None:
        return None
    expected = checks.expectations(base.settings, base.boot, pool.pool, pool.boot.prepared)
    return files.installers.install(
        name,
        pool.pool,
        pool.boot.prepared,
        credentials=credentials,
        expected={node: each.apply(node_check.variables) for node, each in expected.items()},
        after=after,
    )


def pool_checks(
    base: Base, name: str, pool: OrderedPool, installation: PoolInstallation | None, bootstrap: Mapping[Node, Machine]
) -> PoolChecks:
    """Declare the checks that the nodes of a pool are what they should be."""
    runs = installation.generations if installation else None
    return PoolChecks(
        name,
        PoolChecksArgs(
            pool=pool.pool,
            access=base.access,
            expectations=checks.expectations(base.settings, base.boot, pool.pool, pool.boot.prepared, runs),
            timeout=checks.until_reachable(base.settings, pool.pool.role),
            # Nodes get their configuration from the bootstrap machine: if it cannot be made, do not wait for them.
            after=[
                *(installation.installed if installation else ()),
                *(machine.resource for machine in bootstrap.values()),
            ],
        ),
        base.components,
    )


def bootstrap_gates(
    base: ClusterBase,
    bootstrap: Mapping[Node, Machine],
    etcd: Mapping[Node, Machine],
    dns: ClusterDns,
    checked: PoolChecks,
) -> pulumi.Resource:
    """Declare the gates until bootstrap is complete; returns the last one.

    `etcd` are the machines that the cluster needs: control plane and arbiter.
    """
    timeouts = base.settings.timeouts
    return BootstrapGates(
        assets.BOOTSTRAP,
        BootstrapGatesArgs(
            bootstrap=bootstrap,
            control_plane=etcd,
            access=base.access,
            dns=dns,
            assets=base.assets,
            machine_config_networks=_let_in(base, [*bootstrap.values(), *etcd.values()]),
            after=() if bootstrap else checked.passed,
            reachable_timeout=timeouts.machines_reachable,
            api_timeout=timeouts.api_answers,
            complete_timeout=timeouts.bootstrap_complete,
        ),
        base.components,
    ).complete


def _let_in(base: Base, machines: Sequence[Machine]) -> pulumi.Output[list[str]]:
    return machine_config_access.networks(machines, base.settings.machine_config_server.allowed_networks)


def machine_config_gate(
    base: Base,
    control_plane: OrderedPool,
    others: Mapping[Node, Machine],
    checked: PoolChecks,
    installation: PoolInstallation | None,
) -> Gate:
    """Declare the gate after which the control plane gives machine configuration only to the cluster's machines.

    In a running cluster the gate does not wait for the control plane to be reachable: a control plane machine that
    joins needs its configuration from the others before it can be reached.
    """
    reachable = [] if base.stage.formed else [checked.reachable]
    return machine_config_access.gate(
        "machine-config-access",
        control_plane.machines,
        access=base.access,
        allowed=coming_from(_let_in(base, [*control_plane.machines.values(), *others.values()])),
        timeout=base.settings.timeouts.machines_reachable,
        address=base.api_address,
        triggers=list(installation.generations.values()) if installation else (),
        opts=pulumi.ResourceOptions.merge(base.ours, pulumi.ResourceOptions(depends_on=reachable)),
    )


def bootstrap_removal(
    base: Base,
    files: BootFiles,
    bootstrap: Mapping[Node, Machine],
    dns: ClusterDns,
    *,
    after: Sequence[pulumi.Resource],
) -> BootstrapRemoval | None:
    """Declare the removal of the bootstrap machine; None if there is none."""
    for machine in bootstrap.values():
        return BootstrapRemoval(
            "bootstrap-removal",
            BootstrapRemovalArgs(
                machine=machine,
                platform=base.platform.ephemeral_kind,
                dns=dns,
                drain_seconds=base.settings.dns.ttl,
                ignition=files.bootstrap_ignition,
                ignition_files=[BOOTSTRAP_IGNITION],
                after=after,
            ),
            base.components,
        )
    return None


def nodes_ready(
    base: Base,
    machines: Mapping[Node, Machine],
    credentials: ClusterCredentials,
    *,
    etcd_members: int | None = None,
    gives_up_with: Sequence[str],
    after: Sequence[pulumi.Resource],
) -> Gate:
    """Declare the gate that waits until the nodes of all these machines are ready."""
    return Gate(
        "nodes-ready",
        GateArgs(
            spec=NodesReady(
                credentials=credentials,
                names=[node.fqdn for node in machines],
                addresses=node_addresses(machines),
                etcd_members=etcd_members,
                logs=base.access.logs(machines, comes_from_them=False),
            ),
            timeout_seconds=base.settings.timeouts.nodes_ready,
            gives_up_with=gives_up_with,
        ),
        pulumi.ResourceOptions.merge(base.ours, pulumi.ResourceOptions(depends_on=list(after))),
    )


def completion_gates(
    base: Base,
    machines: Mapping[Node, Machine],
    credentials: ClusterCredentials,
    worker_checks: PoolChecks | None,
    *,
    joining: Sequence[pulumi.Resource],
    alone: Sequence[pulumi.Resource],
) -> tuple[Gate, Gate]:
    """Declare two gates: all nodes are ready; and, also after `alone`, the cluster version is available."""
    timeouts = base.settings.timeouts
    workers = [worker_checks.reachable_gate] if worker_checks else []
    members = len(base.nodes.etcd)
    # Once bootstrap is complete the control plane serves the API. So nodes can join while others are checked, and while
    # the bootstrap machine is removed.
    etcd = members if members > _BEFORE_GROWTH or base.nodes.arbiters else None
    ready = nodes_ready(base, machines, credentials, etcd_members=etcd, gives_up_with=workers, after=joining)
    complete = Gate(
        "install-complete",
        GateArgs(
            spec=InstallComplete(credentials=credentials, logs=base.access.logs(machines, comes_from_them=False)),
            timeout_seconds=timeouts.install_complete,
            stability_seconds=timeouts.stable,
            gives_up_with=["nodes-ready", *workers],
        ),
        pulumi.ResourceOptions.merge(base.ours, pulumi.ResourceOptions(depends_on=[*joining, *alone])),
    )
    return ready, complete
