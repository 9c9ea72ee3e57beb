"""How a control plane machine leaves its cluster: its server is switched off, then its etcd member is removed.

OpenShift's etcd does not accept a machine that comes back without its data while its former member is still listed
(`provider.installation.etcd_member`), and no other component removes this member.
"""

from __future__ import annotations

from metal_ipi.cluster_api.clusters import FORMED, Work, is_of, made
from metal_ipi.cluster_api.engine.state import Entry, State, action_urn, name_of
from metal_ipi.cluster_api.reconcilers import joined
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.installation import etcd_member
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.resource import Context

_LEFT = "its machine left the control plane"


def has_left(state: State, node: Node) -> bool:
    """Whether a machine has left the cluster, so that its resources can be deleted."""
    entry = _installation(state, node)
    return entry is None or not entry.id or entry.unfinished == _LEFT or state.named(FORMED) is None


async def has_begun(work: Work, node: Node) -> bool:
    """Whether a machine's removal has begun, or it is not completely installed."""
    state = await work.engine.state()
    there = {name_of(urn) for urn in state.entries}
    going = any(is_of(node, name) for name in work.engine.going())
    return going or not there.issuperset(made(node)) or has_left(state, node)


def begin(work: Work, state: State, node: Node, settings: Settings) -> None:
    """Starts the departure, or does nothing if it is running."""
    entry, formed = _installation(state, node), state.named(FORMED)
    assert entry is not None and formed is not None, "it has not left"

    async def leave(context: Context) -> None:
        job = Job.of_state(entry.inputs)
        await context.status.live(f"switching {node.hostname} off")
        async with joined.driver(work, context.settings, context.status) as driver:
            await driver.boot_disk(job.machine_id)
            await driver.power_off(job.machine_id)
        cluster = Cluster(formed.inputs["spec"], patience=0)
        has_etcd = await cluster.operator("etcd") is not None
        if has_etcd and (why := await etcd_member.take_out(job, cluster, context.status)):
            raise ProviderError(f"{node.fqdn} is still a member of etcd: {why}")
        await etcd_member.remove_secrets(job, cluster)
        await work.engine.mark(entry.urn, _LEFT)

    work.engine.act(action_urn(entry.urn, f"{node.hostname}-departure"), settings, leave, leaving=True)


def _installation(state: State, node: Node) -> Entry | None:
    found = (entry for urn, entry in state.entries.items() if name_of(urn) == made(node)[1])
    return next(found, None)
