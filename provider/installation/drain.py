"""Emptying a node: evicts its pods within their disruption budgets, as `kubectl drain --force` does.

Pods go the way the machine config operator lets them go before it restarts a node (openshift/machine-config-operator,
pkg/controller/drain): DaemonSets' pods, static pods and finished ones stay, emptyDir volumes are lost, and a pod which
no controller makes anew goes too, for its machine is wiped in any case; a remark names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.https import Answer, is_ready
from metal_ipi.provider.installation.inputs import ARBITER, CONTROL_PLANE, WORKER, Job
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.status import Status

_LONGEST_PAUSE = 5.0
_TOO_MANY = 429
"""A disruption budget does not allow it now."""
_REMEDIES = {
    WORKER: "loosen the budget or end the pod",
    # Its budgets guard the quorum of etcd.
    **dict.fromkeys(
        (CONTROL_PLANE, ARBITER),
        "leave the budget as it is, and see to what ails the pods it counts, on the other nodes",
    ),
}


async def drain(cluster: Cluster, job: Job, status: Status) -> None:
    """Returns when no pod is left that has to go. Raises ProviderError naming pods and what keeps them.

    A node which is not Ready has nobody left to end its pods: they end with their machine.
    """
    node, timeout = job.node, job.drain_timeout_seconds
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    told = False
    while True:
        if not is_ready(await cluster.node(node)):
            await status.remark(f"node {node} is not Ready: its pods are left to end with the machine")
            return
        leaving = [pod for pod in await cluster.pods(node) if must_leave(pod)]
        if not leaving:
            return
        lonely = [_name(pod) for pod in leaving if not pod["metadata"].get("ownerReferences")]
        if lonely and not told:
            told = True
            await status.remark(f"no controller makes these pods of {node} anew: {', '.join(lonely)}")
        kept = await _evict(cluster, leaving)
        text = "; ".join(f"{name}: {why}" for name, why in kept.items())
        if backoff.over:
            raise ProviderError(
                f"node {node} could not be drained within {timeout:g} s: {text}. It stays cordoned; "
                f"{_REMEDIES[job.role]}, or raise `reprovision.drainTimeout`: the same command goes on"
            )
        await status.live(f"draining {node}: {text}")
        await backoff.pause()


def must_leave(pod: Mapping[str, Any]) -> bool:
    """Not what is bound to the node by its nature, and not what has ended."""
    metadata: Mapping[str, Any] = pod["metadata"]
    if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
        return False
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    if any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners):
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


async def _evict(cluster: Cluster, pods: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Asks each one to go that was not asked yet, and tells what keeps it."""
    asked = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    answers = await asyncio.gather(*(cluster.evict(pod) for pod in asked))
    kept = {_name(pod): "is terminating" for pod in pods}
    for pod, answer in zip(asked, answers, strict=True):
        # 404: gone already; 409: another pod has its name now.
        if not answer.problem or answer.status in (404, 409):
            continue
        if 400 <= answer.status < 500 and answer.status != _TOO_MANY:
            raise ProviderError(f"pod {_name(pod)} cannot be evicted: {_reason(answer)}")
        kept[_name(pod)] = _reason(answer)
    return kept


def _reason(answer: Answer) -> str:
    """The cluster's words; of a refused eviction the causes name the budget."""
    causes: Sequence[Mapping[str, Any]] = (answer.body.get("details") or {}).get("causes") or ()
    words = [str(item) for item in (answer.body.get("message"), *(cause.get("message") for cause in causes)) if item]
    return " ".join(words) or answer.problem


def _name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
