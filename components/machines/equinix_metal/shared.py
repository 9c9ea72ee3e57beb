"""The project as its machines are ordered in it: what all of them have in common, and what their roles say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.equinix_metal.networks import Networks
from metal_ipi.components.machines.tags import tags
from metal_ipi.provider.types import MachineOrder


@dataclass(frozen=True, kw_only=True)
class Project:
    """Where and how machines are ordered."""

    id: pulumi.Output[str]
    """The project's id."""
    ssh_key_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The project's SSH keys that open the serial consoles; no others do."""
    metro: str | None
    """Where machines are; None: in `facilities`."""
    facilities: list[str] | None
    """Where they are, in order of preference; None: in `metro`."""
    orders: Mapping[str, MachineOrder]
    """What each role's machines are."""
    networks: Networks
    """The VLANs, and whose bonds are in them."""
    custom_data: str | None
    """JSON that machines find in their metadata."""
    ends_at: pulumi.Output[str] | None
    """When Metal deletes all machines; None: never."""
    stack: str
    """The stack's name."""
    cluster: str
    """The cluster's domain."""
    run: pulumi.Input[str]
    """This installation of the cluster."""
    further_tags: Sequence[str]
    """What the user wants on every machine, besides our tags."""

    def tags(self, args: MachineArgs) -> list[pulumi.Input[str]]:
        """The tags of a machine."""
        return tags(
            stack=self.stack,
            cluster=self.cluster,
            hostname=args.node.hostname,
            role=args.node.role,
            run=self.run,
            further=self.further_tags,
        )
