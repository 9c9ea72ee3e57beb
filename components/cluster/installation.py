"""The machines of a pool, installed to their disks, and installed again one by one when what they must run changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Installation, InstallationArgs


@dataclass(frozen=True, kw_only=True)
class PoolInstallationArgs:
    """What the machines of a pool must run."""

    installations: Mapping[Node, InstallationArgs]
    """For each machine: what it must run, and how it is installed."""
    after: Mapping[Node, Sequence[pulumi.Resource]] = field(default_factory=dict[Node, Sequence[pulumi.Resource]])
    """For each machine, resources that must be complete before its installation: the machine exists, and its server is
    no longer lent to the bootstrap machine."""


class PoolInstallation(pulumi.ComponentResource):
    """One `Installation` for each machine of a pool."""

    installed: list[pulumi.Resource]
    """Depend on these to come after all machines have booted from their disks."""
    generations: dict[Node, pulumi.Output[str]]
    """The generation of each machine; changes when it was installed again."""

    def __init__(self, name: str, args: PoolInstallationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:cluster:PoolInstallation", name, None, opts)
        installations = {
            node: Installation(
                f"{node.hostname}-installation",
                each,
                pulumi.ResourceOptions(depends_on=list(args.after.get(node, ())), parent=self),
            )
            for node, each in args.installations.items()
        }
        self.installed = list(installations.values())
        self.generations = {node: each.generation for node, each in installations.items()}
        self.register_outputs({"nodes": [node.fqdn for node in installations]})
