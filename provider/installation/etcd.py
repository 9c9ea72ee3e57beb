"""Whether etcd is complete: a Ready node does not show the state of the etcd member on it.

A machine that is installed again comes back without its data, and OpenShift's etcd does not start there as long as its
old member is in etcd's list. That is removed before (`etcd_member`).
"""

from __future__ import annotations

from collections.abc import Sequence

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates import etcd_operator
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.install import Pace
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.status import Status

NAMESPACE, CONTAINER = "openshift-etcd", "etcdctl"
"""The namespace of etcd's pods, and the container in them with etcdctl and its environment variables."""


async def trouble(cluster: Cluster, *, members: int, needed: Sequence[str] | None = None) -> str | None:
    """What etcd's operator reports about missing members (`etcd_operator.trouble`); None if all are healthy, or if
    there is no such operator."""
    operator = await cluster.operator("etcd")
    return None if operator is None else etcd_operator.trouble(operator, members=members, needed=needed)


async def is_whole(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Wait until all members are healthy again. Raises ProviderError when the time is up."""
    backoff = pace.looks(job.timeout_seconds)
    while text := await trouble(cluster, members=len(job.members)):
        too_long = ProviderError(
            f"node {job.node} was installed and is Ready, but etcd does not have all its members after "
            f"{job.timeout_seconds:g} s: "
            f"{text}. No other control plane machine is installed. Look at "
            f"`oc logs --namespace={NAMESPACE} --container=etcd etcd-{job.node}`. If it says that its data has been "
            f"destroyed, its former member is still in etcd and has to be removed:\n{by_hand(job)}\n"
            "Then run the same command again"
        )
        await backoff.wait_for(f"etcd ({text})", status.live, too_long)


def secret_names(job: Job) -> tuple[str, ...]:
    """The Secrets with the certificates of a node's member."""
    return tuple(f"{prefix}-{job.node}" for prefix in ("etcd-peer", "etcd-serving", "etcd-serving-metrics"))


def by_hand(job: Job, member: str = "") -> str:
    """The commands for removing the machine's member from etcd by hand; with its id, if that is known."""
    other = next((each for each in job.members if each != job.node), "OTHER-NODE")
    etcdctl = f"oc rsh --namespace={NAMESPACE} --container={CONTAINER} etcd-{other} etcdctl member"
    return "\n".join(
        (
            f"  {etcdctl} list -w table",
            f"  {etcdctl} remove {member or f'ID  # that of {job.node} in this list'}",
            f"  oc delete secret --namespace={NAMESPACE} --ignore-not-found {' '.join(secret_names(job))}",
        )
    )
