"""From settings to MetalLB: the machines that announce service addresses, and their peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from metal_ipi.components.endpoints.manifests import Operator
from metal_ipi.components.endpoints.metallb import BgpArgs, BgpNodeArgs, L2Args, MetalLb, MetalLbArgs, PoolArgs
from metal_ipi.components.machines.contract import LastingMachine, Platform
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.stacks.names import POOLS, pool_name
from metal_ipi.stacks.sections.service_addresses import BgpPool, L2Pool, MetalLbBgp, MetalLbL2
from metal_ipi.stacks.settings import Settings


def announcing_role(settings: Settings) -> Role | None:
    """The role of machines that announce service addresses over BGP: those that run the services. None if no machine
    does.

    None also in a pool's stack, because MetalLB belongs to the cluster's own stack.
    """
    if not isinstance(settings.service_addresses, MetalLbBgp) or settings.pool is not None:
        return None
    return "worker" if settings.workers.count else "control-plane"


def service_addresses(
    settings: Settings,
    *,
    platform: Platform,
    announcing: Mapping[Node, LastingMachine],
    kubeconfig: pulumi.Output[str],
    after: Sequence[pulumi.Resource],
    cluster: pulumi.Resource,
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[dict[str, list[str]]] | None:
    """Declare MetalLB; returns the addresses of each pool, or None if the stack does not install MetalLB.

    `announcing` are the machines of `announcing_role`; `cluster` is a resource that lives as long as the cluster.
    """
    section = settings.service_addresses
    if not isinstance(section, MetalLbBgp | MetalLbL2):
        return None
    if isinstance(section, MetalLbBgp):
        nodes = {
            node.fqdn: BgpNodeArgs(neighbours=machine.neighbours(), peers=section.peers_per_node)
            for node, machine in announcing.items()
        }
        announce: BgpArgs | L2Args = BgpArgs(nodes=nodes, hold_time=section.hold_time)
    else:
        announce = L2Args(interfaces=section.interfaces)
    metallb = MetalLb(
        POOLS,
        MetalLbArgs(
            kubeconfig=kubeconfig,
            pools=tuple(_pool(pool, platform) for pool in section.pools),
            announce=announce,
            operator=Operator(catalog=section.catalog) if section.install else None,
            after=after,
            cluster=cluster,
        ),
        opts,
    )
    return metallb.pools


def _pool(pool: BgpPool | L2Pool, platform: Platform) -> PoolArgs:
    addresses: pulumi.Input[Sequence[pulumi.Input[str]]] = list(pool.addresses)
    length = None
    if isinstance(pool, BgpPool):
        length = pool.aggregation_length
        if pool.reserve is not None:
            addresses = [platform.reserved[pool_name(pool)].cidr]
    return PoolArgs(name=pool.name, addresses=addresses, auto_assign=pool.auto_assign, aggregation_length=length)
