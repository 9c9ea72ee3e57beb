"""The etcd member of a control plane machine that is installed again: taken out of etcd before the machine comes back.

A machine that comes back without its data cannot go on as the member that it was: OpenShift's etcd does not start there
as long as that one is in etcd's list (openshift/etcd openshift-tools/pkg/discover-etcd-initial-cluster). Nobody else
takes it out: cluster-etcd-operator's ClusterMemberRemovalController does so only where Machine objects exist, and on
platform none there are none (pkg/operator/ceohelpers/machine_api.go, IsFunctional). Once it is out, and the node has
joined, the operator adds and promotes a new member by itself (pkg/operator/clustermembercontroller).

This is what OpenShift's documentation has people do («replacing an unhealthy etcd member»), by the same means: etcdctl,
in an etcd pod of another node. Its quorum guard is left on: since 4.18 it only keeps the operator from making a new
revision while all nodes are at the newest one, which a node that has just joined is not (CheckSafeToScaleCluster in
pkg/operator/ceohelpers/bootstrap.go); before, certificates stay good, because the node keeps its name and address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.gates import etcd_operator
from metal_ipi.provider.gates.https import is_ready
from metal_ipi.provider.installation import etcd
from metal_ipi.provider.installation.etcd import CONTAINER, NAMESPACE, secret_names
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.install import Pace
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.installation.pod_exec import Ran, execute
from metal_ipi.provider.status import Status

_COMMAND_SECONDS = 60.0


class _Unexpected(Exception):
    """etcd is not as it has to be for a member to be taken out; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of etcd, as etcdctl tells of it."""

    id: str
    """In hex, as etcdctl takes it."""
    name: str
    """Its node's; empty until it has started for the first time."""
    hosts: frozenset[str]
    """Addresses of its peers' URLs."""
    clients: tuple[str, ...]
    learner: bool


async def remove_member(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Returns when the machine is no member any more. Nothing of its old system may run.

    Where it cannot be done from here, it is said how to do it by hand, and waited for.
    """
    if await cluster.operator("etcd") is None:
        await status.remark(f"this cluster has no etcd operator: no member of etcd is taken out for {job.node}")
        return
    backoff = pace.looks(job.timeout_seconds)
    told = False
    while why := await take_out(job, cluster, status):
        if backoff.over:
            raise ProviderError(
                f"machine {job.hostname} was installed again, but its etcd member could not be taken out within "
                f"{job.timeout_seconds:g} s: {why}. The machine stays in its live system, and no other control "
                f"plane machine is taken down. By hand:\n{await _by_hand(job, cluster)}\nThen the same command goes on"
            )
        if not told and backoff.elapsed >= pace.cluster:  # etcd itself is silent for a while when a member goes
            told = True
            await status.remark(
                f"the etcd member of {job.node} is not taken out yet: {why}. It is tried again. By hand:\n"
                f"{await _by_hand(job, cluster)}"
            )
        await status.live(f"waiting to take {job.node} out of etcd ({why}), {backoff.elapsed:.0f} s")
        await backoff.pause()


async def take_out(job: Job, cluster: Cluster, status: Status) -> str:
    """Take the machine's member out of etcd, by one attempt; the cluster has an etcd operator. Nothing of the machine's
    old system may run. Answers why it is not out yet; empty: it is out."""
    try:
        return "" if await _is_out(job, cluster, status) else "it was told to go"
    except _Unexpected as error:
        return str(error)
    except RemoteError as error:
        if etcd_operator.members_available(await cluster.operator("etcd")) == len(job.members) - 1:
            return ""  # somebody did it by hand
        return f"etcd cannot be asked: {error}"


async def remove_secrets(job: Job, cluster: Cluster) -> None:
    """Deletes the certificates of the member that the machine was; the operator makes others for the new one."""
    if await cluster.operator("etcd") is not None:
        for name in secret_names(job):
            await cluster.delete_secret(NAMESPACE, name)


async def _by_hand(job: Job, cluster: Cluster) -> str:
    """The commands, with the member's id where the operator has written it down."""
    known = await cluster.config_map("etcd-endpoints", NAMESPACE)
    ids = [key for key, address in (known or {}).items() if address in job.all_addresses]
    return etcd.by_hand(job, ids[0] if len(ids) == 1 else "")


async def _is_out(job: Job, cluster: Cluster, status: Status) -> bool:
    """Whether the machine is no member. Takes its member out where it is one and that is safe."""
    members = parse(await _etcdctl(job, cluster, "member", "list", "-w", "json"))
    member = stale(members, job)
    if member is None:
        return True
    # It ends with 1 where an endpoint is not healthy, which that of the member is not.
    healthy = healthy_endpoints(
        await _etcdctl(job, cluster, "endpoint", "health", "--cluster", "-w", "json", fine=(1,))
    )
    refuse_unsafe(members, member, healthy, job)
    await status.remark(f"taking {job.node} out of etcd: member {member.id}")
    await _etcdctl(job, cluster, "member", "remove", member.id)
    return False


def stale(members: Sequence[Member], job: Job) -> Member | None:
    """The member that the machine was. Raises where others are not those of this control plane."""
    ours = [each for each in members if each.name == job.node or each.hosts & set(job.all_addresses)]
    others = {each.name for each in members if each not in ours}
    expected = set(job.members) - {job.node}
    if len(ours) > 1 or any(
        each.name not in ("", job.node) or not each.hosts & set(job.all_addresses) for each in ours
    ):
        found = "; ".join(f"{each.id} {each.name or '(not started)'} {', '.join(sorted(each.hosts))}" for each in ours)
        raise _Unexpected(f"which member {job.node} at {', '.join(job.all_addresses)} was is not clear: {found}")
    if others != expected:
        raise _Unexpected(
            f"besides it etcd has {', '.join(sorted(name or '(not started)' for name in others)) or 'none'}, and this "
            f"control plane has {', '.join(sorted(expected)) or 'none'}"
        )
    return ours[0] if ours else None


def refuse_unsafe(members: Sequence[Member], member: Member, healthy: frozenset[str], job: Job) -> None:
    """Raises where the member is alive, or where etcd would not be quorate without it."""
    if healthy & set(member.clients):
        raise _Unexpected(
            f"member {member.id} answers, though {job.node} runs no etcd: find out what answers there first"
        )
    others = [each for each in members if each != member]
    ailing = [each.name for each in others if not healthy & set(each.clients)]
    if ailing:
        raise _Unexpected(f"other members are not healthy: {', '.join(sorted(ailing))}")
    voters = [each for each in members if not each.learner]
    if len([each for each in others if not each.learner]) < len(voters) // 2 + 1:
        raise _Unexpected(f"of {len(voters)} members no quorum would remain")


def parse(output: str) -> list[Member]:
    """`etcdctl member list -w json`: ids are numbers there, and names and client URLs are missing before a start."""
    try:
        found: Sequence[Mapping[str, Any]] = json.loads(output)["members"]
        return [
            Member(
                id=f"{int(each['ID']):x}",
                name=str(each.get("name") or ""),
                hosts=frozenset(str(urlsplit(url).hostname) for url in each["peerURLs"]),
                clients=tuple(url.rstrip("/") for url in each.get("clientURLs") or ()),
                learner=bool(each.get("isLearner")),
            )
            for each in found
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RemoteError(f"etcdctl's list of members cannot be read: {output[:200]!r}") from None


def healthy_endpoints(output: str) -> frozenset[str]:
    """`etcdctl endpoint health -w json`: the URLs that are healthy."""
    try:
        found: Sequence[Mapping[str, Any]] = json.loads(output)
        return frozenset(str(each["endpoint"]).rstrip("/") for each in found if each["health"] is True)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RemoteError(f"etcdctl's word on health cannot be read: {output[:200]!r}") from None


async def _etcdctl(job: Job, cluster: Cluster, *words: str, fine: tuple[int, ...] = ()) -> str:
    """What etcdctl prints in the etcd pod of another control plane node, the first one that is ready."""
    pods = await cluster.pods_of(NAMESPACE, "etcd=true")
    others = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") in set(job.members) - {job.node}]
    ready = [pod for pod in others if is_ready(pod)]
    if not ready:
        raise RemoteError("no etcd pod of another control plane node is ready")
    done: Ran = await execute(cluster.api, ready[0], CONTAINER, ("etcdctl", *words), timeout=_COMMAND_SECONDS)
    if done.code not in (0, *fine):
        said = " ".join((done.errors or done.output).split())[-300:]
        raise RemoteError(f"`etcdctl {' '.join(words)}` ended with {done.code}: {said}")
    return done.output
