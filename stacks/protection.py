"""Protects resources from deletion and replacement, unless the setting `protect` is false.

A machine that runs from memory is ordered again as long as there is no cluster (`components.install.stage`), so from
the second run on it is not protected until then. The engine can remove protection and machine in one run.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pulumi

from metal_ipi.components.install.stage import Stage
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.settings import Settings

_LOST_FOR_GOOD = frozenset(
    {
        "metal-ipi:index:ClusterKeys",
        "equinix-metal:index/project:Project",
        "equinix-metal:index/reservedIpBlock:ReservedIpBlock",
    }
)
_MACHINES = frozenset(
    {"equinix-metal:index/device:Device", "metal-ipi:index:RedfishMachine", "metal-ipi:index:IronicMachine"}
)


def protection(settings: Settings, nodes: Nodes, reached: Stage) -> list[pulumi.ResourceTransformation] | None:
    """Transformations that protect irreplaceable resources; None if the settings protect nothing."""
    if not settings.protects:
        return None
    ordered_again = reached.resumed and not settings.boot.install
    machines = () if ordered_again else nodes.etcd
    return [_transformation(frozenset(node.hostname for node in machines))]


def _transformation(control_plane: AbstractSet[str]) -> pulumi.ResourceTransformation:
    """Protect keys, project, reserved addresses, and the machines with these host names."""

    def protected(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        is_etcds = args.type_ in _MACHINES and args.props.get("hostname") in control_plane
        if args.type_ not in _LOST_FOR_GOOD and not is_etcds:
            return None
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=True))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return protected
