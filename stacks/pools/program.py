"""The program of a pool: its workers, from their order to their labels. The cluster belongs to another stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pulumi

from metal_ipi.components.boot.ipxe import BootSpec
from metal_ipi.components.endpoints import machine_config_access
from metal_ipi.components.endpoints.pool_dns import PoolDns, PoolDnsArgs
from metal_ipi.components.install.stage import Stage
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Preflight
from metal_ipi.stacks import day_two, mirror, steps
from metal_ipi.stacks.api_address import routes_to_machines
from metal_ipi.stacks.base import Base, Providers, access_of
from metal_ipi.stacks.boot_files import BootFiles
from metal_ipi.stacks.cost import cost
from metal_ipi.stacks.host_networks import host_networks
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.pools.cluster import ReferencedCluster
from metal_ipi.stacks.preflight import plan
from metal_ipi.stacks.sections.dns import NoDns
from metal_ipi.stacks.settings import Settings


def declare(settings: Settings, control_plane: Sequence[Node], boot: BootSpec) -> dict[str, pulumi.Input[Any]]:
    """Declare a pool; returns the stack's outputs, by name.

    Args:
        settings: the settings of the pool.
        control_plane: the cluster's control plane nodes. What else these arguments are made of, `seen` must have, too.
    """
    cluster = ReferencedCluster(settings, control_plane)
    base = _joined(settings, cluster, boot)
    files = BootFiles(base, None)
    workers = steps.ordered_pool(base, files, "worker", "workers", base.nodes.workers)
    costs = cost(settings, workers.machines, base.invoke)
    dns = PoolDns(
        "dns",
        PoolDnsArgs(
            domain=settings.domain,
            zone=settings.zone,
            ttl=settings.dns.ttl,
            workers=workers.pool.addresses,
            ipv6={node.fqdn: machine.ipv6 for node, machine in workers.machines.items() if machine.ipv6},
            reverse_zones=settings.dns.reverse_zones,
            takes_ingress=routes_to_machines(settings),
            beside=cluster.project_stack,
        ),
        base.components,
    )
    let_in = _let_in(base, cluster, workers)
    installed = steps.installation(base, files, "worker-installation", workers, cluster.credentials, after={})
    checks = steps.pool_checks(base, "worker-checks", workers, installed, {})
    joining = [let_in, *(installed.installed if installed else ())]
    ready = steps.nodes_ready(
        base, workers.machines, cluster.credentials, gives_up_with=[checks.reachable_gate], after=joining
    )
    day_two.node_marks(settings, workers.machines, cluster.credentials, [ready], base.ours)
    outputs: dict[str, pulumi.Input[Any] | None] = {
        "cluster": {"name": settings.cluster_name, "domain": settings.domain, "version": settings.openshift_version},
        "pool": {"name": settings.pool, "stack": cluster.stack},
        "cost": costs,
        "dns": {"needed": dns.needed} if isinstance(settings.dns, NoDns) else None,
        "nodes": checks.nodes,
    }
    return {name: value for name, value in outputs.items() if value is not None}


def _joined(settings: Settings, cluster: ReferencedCluster, boot: BootSpec) -> Base:
    """Declare preflight and the platform: everything that comes before machines."""
    site, nodes, keys = facility(settings), Nodes.of(settings), cluster.keys
    networks = host_networks(site, nodes.all)
    providers = Providers.of(settings, boot, pulumi.ResourceOptions())
    planned = plan(settings, boot.artifacts, pulumi.get_stack())
    checked = Preflight("preflight", planned, run=keys.id, opts=providers.ours)
    platform = site.component(keys, [checked], providers.components, cluster.platform)
    return Base(
        settings=settings,
        site=site,
        nodes=nodes,
        networks=networks,
        boot=replace(boot, artifacts=mirror.served(settings, boot.artifacts)),
        stage=Stage(formed=True),
        ours=providers.ours,
        components=providers.components,
        invoke=providers.invoke,
        keys=keys,
        access=access_of(settings, keys),
        worker_pointer=cluster.worker_pointer,
        platform=platform,
        api_address=None,  # workers do not announce the API's address
        ingress_address=None if routes_to_machines(settings) else cluster.ingress_address,
    )


def _let_in(base: Base, cluster: ReferencedCluster, workers: steps.OrderedPool) -> pulumi.Resource:
    """Declare the gate that adds the pool's machines to the list of those that the control plane gives configuration
    to."""
    nodes = cluster.control_plane()
    return machine_config_access.gate(
        "machine-config-access",
        nodes,
        access=base.access,
        allowed=machine_config_access.networks(list(workers.machines.values()), ()),
        timeout=base.settings.timeouts.machines_reachable,
        triggers=[machine.generation for machine in nodes.values()],
        part=base.settings.pool,
        opts=base.ours,
    )
