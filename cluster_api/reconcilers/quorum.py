"""Checks that etcd survives without a control plane machine, before one is removed or power-cycled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from metal_ipi.cluster_api.api import MACHINE, Api, Object, owner_of
from metal_ipi.cluster_api.clusters import CLUSTER_LABEL, FORMED, NotUsable, Work, leaving
from metal_ipi.cluster_api.reconcilers import departure
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE, METAL_IPI_REMEDIATION
from metal_ipi.cluster_api.resources.remediation import RemediationSpec
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.installation import etcd
from metal_ipi.provider.installation.nodes import Cluster


async def keep(api: Api, work: Work, node: Node) -> None:
    """Raises NotUsable if the control plane would not have a majority of its machines without this one, and
    ProviderError if the cluster does not answer. Hold `Engine.deciding` from here until the removal has begun."""
    formed = (await work.engine.state()).named(FORMED)
    if formed is None:
        return
    cluster = Cluster(formed.inputs["spec"], patience=0)
    away = await _unavailable(api, work, node, cluster)
    members = work.nodes.control_plane
    left, needed = len(members) - 1 - len(away), len(members) // 2 + 1
    missing = await etcd.trouble(
        cluster, members=len(members), needed=[each.fqdn for each in members if each != node and each.fqdn not in away]
    )
    if left < needed or missing:
        raise NotUsable(
            "QuorumAtStake",
            f"{node.fqdn} stays: {left} of {len(members)} control plane nodes would be left, and etcd needs {needed}. "
            f"Not available: {', '.join(f'{name} ({why})' for name, why in away.items()) or 'none'}. "
            f"{f'etcd: {missing}. ' if missing else ''}To remove the whole cluster, delete the Cluster",
        )


async def _unavailable(api: Api, work: Work, node: Node, cluster: Cluster) -> Mapping[str, str]:
    """Which other control plane machines do not count, and why. A node whose server was powered off still is Ready for
    40 s (node-monitor-grace-period of OpenShift's default worker latency profile), so running operations on servers
    count, too. Of machines that are being deleted, one whose turn comes later counts until its removal begins: else two
    would wait for each other."""
    labels = f"{CLUSTER_LABEL}={work.name}"
    machines = {str(each["metadata"]["name"]): each for each in await api.list(MACHINE, work.namespace, labels)}
    cycled = {
        owner_of(each, MACHINE.kind)
        for each in await api.list(METAL_IPI_REMEDIATION.resource, work.namespace, labels)
        if _has_time(each)
    }
    items = await api.list(METAL_IPI_MACHINE.resource, work.namespace, labels)
    turns = {
        str(each["spec"].get("server")): _turn(each, machines.get(owner_of(each, MACHINE.kind) or "")) for each in items
    }
    own = turns.get(node.name)
    servers: dict[str, str] = {}
    for each in items:
        owner, server = owner_of(each, MACHINE.kind), str(each["spec"].get("server"))
        turn = turns[server]
        if turn is not None and (own is None or turn < own):
            servers[server] = "is being deleted"
        elif owner in cycled:
            servers[server] = "was power-cycled just now"
    others = [each for each in work.nodes.control_plane if each != node]
    found = await cluster.away([each.fqdn for each in others])
    for each in others:
        if each.name in servers:
            found[each.fqdn] = f"its machine {servers[each.name]}"
        elif await departure.has_begun(work, each):
            found[each.fqdn] = "its server is being installed or removed"
    return found


def _turn(item: Object, machine: Object | None) -> tuple[bool, str, str] | None:
    """The place of a MetalIpiMachine among those that are being deleted; None: it and its Machine stay.

    One that is drained comes first: Cluster API deletes it only then. OpenShift lets no second control plane node be
    drained meanwhile, because the guard pod of its etcd comes back only when the node is schedulable
    (openshift/library-go, guard_controller.go). Then counts when it was deleted, then its name.
    """
    first = next((each["metadata"] for each in (machine, item) if each is not None and leaving(each)), None)
    return first and (not leaving(item), str(first["deletionTimestamp"]), str(item["metadata"]["name"]))


def seconds_since(time: str) -> float:
    """Seconds since a timestamp in the form of Kubernetes objects."""
    return (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()


def _has_time(remediation: Object) -> bool:
    """Whether a machine was power-cycled, and still has time to come back."""
    last = (remediation.get("status") or {}).get("lastPowerCycle")
    spec = RemediationSpec.model_validate(remediation.get("spec") or {})
    return bool(last) and seconds_since(str(last)) <= spec.timeout_seconds
