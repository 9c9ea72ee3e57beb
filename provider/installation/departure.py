"""A worker that leaves its cluster, because the program no longer declares it, or orders it again.

It is drained, and its Node object deleted, before its machine is deleted: a later machine of the same name could not
join with the old object (`node_object`). A node that is not Ready cannot be drained, and its pods may still run. So its
object is kept until its machine is known to be off: once it is deleted, the cluster starts its pods elsewhere.
"""

from __future__ import annotations

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.https import is_ready
from metal_ipi.provider.installation import machine
from metal_ipi.provider.installation.drain import drain
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.install import Installer
from metal_ipi.provider.installation.machine import Installed
from metal_ipi.provider.installation.node_object import NodeObject
from metal_ipi.provider.installation.nodes import Cluster, Refused, Unreachable
from metal_ipi.provider.status import Status

_LEAVING = "leaving"
"""The value of the node's cordon annotation, in place of a generation."""


async def leave(job: Job, cluster: Cluster, installer: Installer, status: Status) -> None:
    """Drain the worker and delete its Node object.

    Raises ProviderError if its pods cannot be evicted, or the API does not answer; then its machine is not deleted.
    """
    try:
        node = await cluster.node(job.node)
    except Unreachable as error:
        seen = await machine.look(job)
        if job.disposable or (isinstance(seen, Installed) and not seen.joined):
            return  # no cluster has ever seen it
        raise ProviderError(
            f"worker {job.hostname} is not removed, because its node {job.node} cannot be drained: {error}. Make the "
            "cluster answer again; if it does not exist any more, remove the Installation from the state (pulumi "
            "state delete with its URN)"
        ) from None
    if node is None:
        return
    try:
        await status.live(f"cordoning {job.node}")
        await cluster.cordon(job.node, _LEAVING)
    except Refused as error:
        await status.remark(f"{job.node} is not drained before it is removed: {error}")
        return
    await drain(cluster, job, status)
    if is_ready(await cluster.node(job.node)) or await _is_off(installer):
        await NodeObject(cluster, job, status).remove_for_good()
        return
    await status.remark(
        f"the Node object {job.node} stays, because it is not known whether its pods still run. Once its machine is "
        "off: "
        f"oc delete node {job.node}"
    )


async def _is_off(installer: Installer) -> bool:
    """Whether the machine is known to be off. False if that cannot be asked: for a deleted device, or a server that is
    no longer in the settings. Neither prevents a worker from leaving."""
    try:
        return await installer.is_off()
    except ProviderError:
        return False
