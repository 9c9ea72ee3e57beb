"""The machines of a pool, installed to their disks; installed again, in turn, when what they are to run changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Installation, InstallationArgs


@dataclass(frozen=True, kw_only=True)
class PoolInstallationArgs:
    """What the machines of a pool are to run."""

    installations: Mapping[Node, InstallationArgs]
    """What each is to run, and what installs it."""
    after: Mapping[Node, Sequence[pulumi.Resource]] = field(default_factory=dict[Node, Sequence[pulumi.Resource]])
    """What must be done before one is installed: its machine is made, and its server given back if it was lent."""


class PoolInstallation(pulumi.ComponentResource):
    """One `Installation` for each machine of a pool."""

    installed: list[pulumi.Resource]
    """What to depend on, to come after all machines were started from their disks."""
    generations: dict[Node, pulumi.Output[str]]
    """What each machine runs: changes when it was installed again."""

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
