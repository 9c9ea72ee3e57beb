"""Checks whether the node of a machine has joined; if it is missing, asks the server's BMC."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from metal_ipi.cluster_api.api import Object
from metal_ipi.cluster_api.clusters import FORMED, Work, made
from metal_ipi.cluster_api.engine.plan import Plan
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.https import is_ready
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.platforms.registry import open_driver
from metal_ipi.provider.status import Status

SCHEME = "metal-ipi://"
JOINED = "Joined"
_PATIENCE = 20.0
"""Seconds for a BMC to report whether its server is on."""


async def look(work: Work, node: Node, machine: Object, plan: Plan) -> tuple[bool, str, str]:
    """Whether a machine that was installed is well, the reason and the message of its condition.

    Sets the Node's providerID: Cluster API finds the Node by it, and OpenShift on platforms none and baremetal without
    machines sets none. If the Machine's Node is gone or not Ready, the message contains what the BMC reports.
    """
    formed = (await work.engine.state()).named(FORMED)
    if formed is None:
        return True, "Installed", "the cluster is not formed yet"
    api = Cluster(formed.inputs["spec"], patience=0)
    known = bool(((machine.get("status") or {}).get("nodeRef") or {}).get("name"))
    try:
        found = await api.node(node.fqdn)
        if found is None and not known:
            return True, "Installed", f"node {node.fqdn} has not joined yet"
        if found is None:
            return (
                False,
                "NodeGone",
                f"there is no node {node.fqdn} any more; {await _server(work, node, plan.settings)}",
            )
        wanted = f"{SCHEME}{node.hostname}"
        has = str((found.get("spec") or {}).get("providerID") or "")
        if has not in ("", wanted):
            said = f"node {node.fqdn} has the providerID {has}, not {wanted}: Cluster API will not find it"
            return True, JOINED, said
        if not has and not await api.patch_node(found, {"spec": {"providerID": wanted}}):
            return True, "Installed", f"node {node.fqdn} changed just now"
    except ProviderError as error:
        return True, "Installed", str(error)
    if known and not is_ready(found):
        return False, "NodeNotReady", f"node {node.fqdn} is not Ready; {await _server(work, node, plan.settings)}"
    return True, JOINED, ""


def driver(work: Work, settings: Settings, status: Status | None = None) -> AbstractAsyncContextManager[Any]:
    """The driver of the cluster's servers, all of which have a BMC (`provider.installation.remote`)."""
    return open_driver(work.settings.platform.type, settings, status)


async def power(work: Work, node: Node, settings: Settings) -> str:
    """`On`, `Off` or another word of the platform. Raises ProviderError, TimeoutError."""
    entry = (await work.engine.state()).named(made(node)[0])
    if entry is None:
        return "nobody's"
    async with asyncio.timeout(_PATIENCE), driver(work, settings) as opened:
        return str(await opened.power_state(entry.outputs["machineId"]))


async def _server(work: Work, node: Node, settings: Settings) -> str:
    try:
        return f"its server {node.name} is {(await power(work, node, settings)).lower()}"
    except TimeoutError:
        return f"its server {node.name} does not report within {_PATIENCE:g} s whether it is on"
    except ProviderError as error:
        return f"its server {node.name} does not report whether it is on: {error}"
