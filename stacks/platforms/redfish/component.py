"""From settings to the component that claims the servers of a rack."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.redfish import Redfish, RedfishArgs
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.listed.component import bootstrap_vm, listed_server
from metal_ipi.stacks.platforms.redfish import settings as sections


def component(
    settings: Settings,
    section: sections.Redfish,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Platform:
    """Declare the platform."""
    nodes, listed = Nodes.of(settings), {each.name: listed_server(each) for each in section.servers}
    servers = {node.hostname: listed[node.name] for node in (*nodes.etcd, *nodes.workers)}
    if section.lent in listed:  # false in the stack of a pool
        servers[nodes.bootstrap.hostname] = listed[section.lent]
    bmcs = {server.name: server.bmc.address for server in section.servers}
    args = RedfishArgs(servers=servers, bmcs=bmcs, bootstrap_vm=bootstrap_vm(settings, section), after=after)
    return Redfish("platform", args, opts)
