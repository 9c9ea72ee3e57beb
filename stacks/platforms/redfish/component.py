"""From settings to the component that claims a rack's servers."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.redfish import Redfish, RedfishArgs, RedfishServer
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.listed.component import bootstrap_vm
from metal_ipi.stacks.platforms.redfish import settings as sections


def component(
    settings: Settings,
    section: sections.Redfish,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Platform:
    """Declare the platform."""
    nodes, listed = Nodes.of(settings), {each.name: _server(each) for each in section.servers}
    servers = {node.hostname: listed[node.name] for node in (*nodes.control_plane, *nodes.workers)}
    if section.lent is not None:
        servers[nodes.bootstrap.hostname] = listed[section.lent]
    args = RedfishArgs(servers=servers, bootstrap_vm=bootstrap_vm(settings, section), after=after)
    return Redfish("platform", args, opts)


def _server(server: sections.Server) -> RedfishServer:
    return RedfishServer(
        name=server.name,
        bmc=server.bmc.address,
        mac=server.mac,
        address=server.address,
        private_address=server.private_address or server.address,
        accept=server.accept,
    )
