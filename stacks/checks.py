"""From settings to what the nodes of a pool must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.boot import installer
from metal_ipi.components.boot.ipxe import BootSpec, consoles
from metal_ipi.components.checks.node_check import Expectation
from metal_ipi.components.cluster.pool import NodePool
from metal_ipi.components.machines.contract import Machine
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.stacks.installers import Prepared
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.settings import Settings


def until_reachable(settings: Settings, role: Role) -> int:
    """Seconds until nodes of a role must answer.

    Workers get their configuration from the control plane, not from the bootstrap machine (machine-config-operator
    pkg/server/bootstrap_server.go), so for them the time until bootstrap is complete is added.
    """
    timeouts = settings.timeouts
    return timeouts.machines_reachable + (timeouts.bootstrap_complete if role == "worker" else 0)


def expectations(
    settings: Settings,
    boot: BootSpec,
    pool: NodePool,
    prepared: Mapping[Node, Prepared],
    runs: Mapping[Node, pulumi.Output[str]] | None = None,
) -> dict[Node, pulumi.Output[Expectation]]:
    """What each node of a pool must be.

    Args:
        prepared: what installs the nodes; empty if they run from memory.
        runs: the generations on the nodes' disks, known once they are installed. With `reprovision.controlPlane: keep`
            a control plane machine may have an earlier generation; then it is checked against that generation.
    """
    may_be_kept = pool.role != "worker" and settings.reprovision.control_plane == "keep"

    def expected(node: Node, machine: Machine) -> pulumi.Output[Expectation]:
        generation = prepared[node].system.generation if node in prepared else None
        on_disk = runs[node] if runs is not None and may_be_kept else generation
        found = pulumi.Output.all(machine.public_ipv4, machine.private_ipv4, generation, on_disk)
        return found.apply(lambda known: _expectation(settings, boot, node, machine, known, installed=bool(prepared)))

    return {node: expected(node, machine) for node, machine in pool.machines.items()}


def _expectation(
    settings: Settings, boot: BootSpec, node: Node, machine: Machine, known: list[Any], *, installed: bool
) -> Expectation:
    public_ipv4, private_ipv4, generation, on_disk = known
    arguments = tuple(f"console={console}" for console in consoles(boot))
    if installed:
        persisted = (f"console={installer.persisted_console(console)}" for console in consoles(boot))
        arguments = (*persisted, *settings.kernel_arguments(node.name))
    kept, network = generation != on_disk, facility(settings).host_network(node)
    return Expectation(
        hostname=node.fqdn,
        metadata_hostname=node.hostname,
        public_ipv4=public_ipv4,
        private_ipv4=private_ipv4,
        platform_id=boot.platform_id,
        release=None if kept else boot.artifacts.release,
        kernel_arguments=() if kept else arguments,
        generation=on_disk,
        fips=settings.install.fips and not kept,
        links=() if kept or network is None else network.links,
        ipv6=None if kept else machine.ipv6,
    )
