"""Removes the etcd member of a control plane machine that is installed again, before the machine comes back.

A machine that comes back without its data cannot continue as its old member: OpenShift's etcd does not start there as
long as that member is in etcd's list (openshift/etcd openshift-tools/pkg/discover-etcd-initial-cluster). Nothing else
removes it: cluster-etcd-operator's ClusterMemberRemovalController does so only with Machine objects, which platform
none does not have (pkg/operator/ceohelpers/machine_api.go, IsFunctional). Once it is removed, and the node has joined,
the operator adds and promotes a new member itself (pkg/operator/clustermembercontroller).

OpenShift's documentation describes the same procedure for people («replacing an unhealthy etcd member»): etcdctl in an
etcd pod of another node. Its quorum guard stays on: since 4.18 it only prevents the operator from rolling out a new
revision while all nodes are at the newest one, which a node that has just joined is not (CheckSafeToScaleCluster in
pkg/operator/ceohelpers/bootstrap.go); before 4.18, certificates stay valid, because the node keeps its name and
address.
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
    """etcd is not in a state in which a member may be removed; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of etcd, as etcdctl reports it."""

    id: str
    """In hex, as etcdctl takes it."""
    name: str
    """The name of its node; empty until it has started for the first time."""
    hosts: frozenset[str]
    """The hosts in its peer URLs."""
    clients: tuple[str, ...]
    learner: bool


async def remove_member(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Return when the machine is no longer a member. Its old system must not run any more.

    If the member cannot be removed automatically, the commands for doing it by hand are reported, and waited for.
    Raises ProviderError when the time is up.
    """
    if await cluster.operator("etcd") is None:
        await status.remark(f"this cluster has no etcd operator: no member of etcd is removed for {job.node}")
        return
    backoff = pace.looks(job.timeout_seconds)
    warned = False
    while why := await take_out(job, cluster, status):
        if backoff.over:
            raise ProviderError(
                f"machine {job.hostname} was installed again, but its etcd member could not be removed within "
                f"{job.timeout_seconds:g} s: {why}. The machine stays in its live system, and no other control plane "
                f"machine is installed. Remove the member by hand:\n{await _by_hand(job, cluster)}\nThen run the same "
                "command "
                "again"
            )
        # etcd itself does not answer for a while after a member was removed
        if not warned and backoff.elapsed >= pace.cluster:
            warned = True
            await status.remark(
                f"the etcd member of {job.node} is not removed yet: {why}. It is tried again. To remove it by hand:\n"
                f"{await _by_hand(job, cluster)}"
            )
        await status.live(f"waiting to remove {job.node} from etcd ({why}), {backoff.elapsed:.0f} s")
        await backoff.pause()


async def take_out(job: Job, cluster: Cluster, status: Status) -> str:
    """Try once to remove the machine's member from etcd. The cluster must have an etcd operator, and the machine's old
    system must not run. Returns why it is not removed yet; empty if it is."""
    try:
        return "" if await _is_out(job, cluster, status) else "its removal was requested"
    except _Unexpected as error:
        return str(error)
    except RemoteError as error:
        if etcd_operator.members_available(await cluster.operator("etcd")) == len(job.members) - 1:
            return ""  # it was removed by hand
        return f"etcd cannot be asked: {error}"


async def remove_secrets(job: Job, cluster: Cluster) -> None:
    """Delete the certificates of the machine's old member; the operator issues others for the new one."""
    if await cluster.operator("etcd") is not None:
        for name in secret_names(job):
            await cluster.delete_secret(NAMESPACE, name)


async def _by_hand(job: Job, cluster: Cluster) -> str:
    """The commands for doing it by hand; with the member's id, if the operator has recorded it."""
    known = await cluster.config_map("etcd-endpoints", NAMESPACE)
    ids = [key for key, address in (known or {}).items() if address in job.all_addresses]
    return etcd.by_hand(job, ids[0] if len(ids) == 1 else "")


async def _is_out(job: Job, cluster: Cluster, status: Status) -> bool:
    """Whether the machine is not a member. If it is one, and removal is safe, remove its member."""
    members = parse(await _etcdctl(job, cluster, "member", "list", "-w", "json"))
    member = stale(members, job)
    if member is None:
        return True
    # etcdctl exits with 1 if an endpoint is not healthy, and the old member's is not.
    healthy = healthy_endpoints(
        await _etcdctl(job, cluster, "endpoint", "health", "--cluster", "-w", "json", fine=(1,))
    )
    refuse_unsafe(members, member, healthy, job)
    await status.remark(f"removing {job.node} from etcd: member {member.id}")
    await _etcdctl(job, cluster, "member", "remove", member.id)
    return False


def stale(members: Sequence[Member], job: Job) -> Member | None:
    """The machine's old member; None if it has none. Raises _Unexpected if the other members are not those of this
    control plane."""
    ours = [each for each in members if each.name == job.node or each.hosts & set(job.all_addresses)]
    others = {each.name for each in members if each not in ours}
    expected = set(job.members) - {job.node}
    if len(ours) > 1 or any(
        each.name not in ("", job.node) or not each.hosts & set(job.all_addresses) for each in ours
    ):
        found = "; ".join(f"{each.id} {each.name or '(not started)'} {', '.join(sorted(each.hosts))}" for each in ours)
        raise _Unexpected(f"it is not clear which member {job.node} at {', '.join(job.all_addresses)} was: {found}")
    if others != expected:
        raise _Unexpected(
            f"besides it etcd has {', '.join(sorted(name or '(not started)' for name in others)) or 'none'}, and this "
            f"control plane has {', '.join(sorted(expected)) or 'none'}"
        )
    return ours[0] if ours else None


def refuse_unsafe(members: Sequence[Member], member: Member, healthy: frozenset[str], job: Job) -> None:
    """Raise _Unexpected if the member is alive, or if etcd would lose its quorum without it."""
    if healthy & set(member.clients):
        raise _Unexpected(
            f"member {member.id} answers, although {job.node} runs no etcd: first find out what answers there"
        )
    others = [each for each in members if each != member]
    ailing = [each.name for each in others if not healthy & set(each.clients)]
    if ailing:
        raise _Unexpected(f"other members are not healthy: {', '.join(sorted(ailing))}")
    voters = [each for each in members if not each.learner]
    if len([each for each in others if not each.learner]) < len(voters) // 2 + 1:
        raise _Unexpected(f"of {len(voters)} members no quorum would remain")


def parse(output: str) -> list[Member]:
    """Parse `etcdctl member list -w json`: ids are numbers; names and client URLs are missing before a member's first
    start."""
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
    """Parse `etcdctl endpoint health -w json`: the URLs of healthy endpoints."""
    try:
        found: Sequence[Mapping[str, Any]] = json.loads(output)
        return frozenset(str(each["endpoint"]).rstrip("/") for each in found if each["health"] is True)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RemoteError(f"etcdctl's answer on health cannot be read: {output[:200]!r}") from None


async def _etcdctl(job: Job, cluster: Cluster, *words: str, fine: tuple[int, ...] = ()) -> str:
    """Run etcdctl in the first ready etcd pod of another control plane node; returns its output. Raises RemoteError."""
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
