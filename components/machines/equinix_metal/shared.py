"""Settings that all machines of a project share, and the order of each role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.equinix_metal.networks import Networks
from metal_ipi.components.machines.tags import tags
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import MachineOrder


@dataclass(frozen=True, kw_only=True)
class Project:
    """Where and how machines are ordered."""

    id: pulumi.Output[str]
    """The project's id."""
    ssh_key_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The project's SSH keys; only they have access to the serial consoles."""
    metro: str | None
    """The metro of the machines. None: they are in `facilities`."""
    facilities: list[str] | None
    """Facilities in order of preference. None: they are in `metro`."""
    orders: Mapping[str, MachineOrder]
    """The order for the machines of each role."""
    networks: Networks
    """The VLANs, and the machines whose bonds are in them."""
    custom_data: str | None
    """JSON that machines can read from their metadata."""
    ends_at: pulumi.Output[str] | None
    """The time at which Metal deletes all machines. None: never."""
    stack: str
    """The stack's name."""
    cluster: str
    """The cluster's domain."""
    run: pulumi.Input[str]
    """The id of this installation of the cluster."""
    further_tags: Sequence[str]
    """The user's tags for every machine, besides ours."""

    def tags(self, args: MachineArgs) -> list[pulumi.Input[str]]:
        """The tags of a machine."""
        return tags(
            stack=self.stack,
            cluster=self.cluster,
            hostname=args.node.hostname,
            role=args.node.role,
            run=coming_from(self.run),  # the keys stand before what it boots
            further=self.further_tags,
        )
