"""A worker that leaves its cluster, because the program does not have it any more, or has it ordered anew.

It is drained and its Node object removed before its machine goes: a machine of the same name that comes later could not
join under it (`node_object`). A node that is not Ready cannot be drained, and its pods may still run: its object stays
until its machine is known to be off, for the cluster starts pods of a node that does not exist elsewhere.
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
"""What the node's cordon tells in place of a generation."""


async def leave(job: Job, cluster: Cluster, installer: Installer, status: Status) -> None:
    """Raises ProviderError where its pods cannot go, or nobody can be asked: then its machine is not deleted."""
    try:
        node = await cluster.node(job.node)
    except Unreachable as error:
        seen = await machine.look(job)
        if job.disposable or (isinstance(seen, Installed) and not seen.joined):
            return  # no cluster has ever seen it
        raise ProviderError(
            f"worker {job.hostname} is not taken away, because its node {job.node} cannot be drained: {error}. Bring "
            "the cluster back; if it is gone for good, take its Installation from the state (pulumi state delete with "
            "its URN)"
        ) from None
    if node is None:
        return
    try:
        await status.live(f"cordoning {job.node}")
        await cluster.cordon(job.node, _LEAVING)
    except Refused as error:
        await status.remark(f"{job.node} is not drained before it goes: {error}")
        return
    await drain(cluster, job, status)
    if is_ready(await cluster.node(job.node)) or await _is_off(installer):
        await NodeObject(cluster, job, status).remove_for_good()
        return
    await status.remark(
        f"the Node object {job.node} stays, for it is not known whether its pods still run. Once its machine is off: "
        f"oc delete node {job.node}"
    )


async def _is_off(installer: Installer) -> bool:
    """Whether the machine surely has no power. That cannot be asked of a device that is gone, nor of a server that was
    taken out of the settings: neither keeps a worker from leaving."""
    try:
        return await installer.is_off()
    except ProviderError:
        return False
