"""From settings to the component that claims servers from Ironic."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.ironic import Ironic, IronicArgs
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.ironic import settings as sections
from metal_ipi.stacks.platforms.listed.component import bootstrap_vm, listed_server


def component(
    settings: Settings,
    section: sections.Ironic,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Platform:
    """Declare the platform."""
    nodes, listed = Nodes.of(settings), {each.name: listed_server(each) for each in section.servers}
    lasting = (*nodes.etcd, *nodes.workers)
    args = IronicArgs(
        endpoint=section.api.endpoint,
        servers={node: listed[node.name] for node in lasting},
        timeout=settings.timeouts.machines_active,
        by_network=frozenset(each.name for each in section.servers if each.by_network),
        lent=next((node for node in lasting if node.name == section.lent), None),
        bootstrap_vm=bootstrap_vm(settings, section),
        after=after,
    )
    return Ironic("platform", args, opts)
