"""Drains a node: evicts its pods within their disruption budgets, like `kubectl drain --force`.

The rules are those of the machine config operator before a reboot (openshift/machine-config-operator,
pkg/controller/drain): pods of DaemonSets, static pods and finished pods stay; emptyDir volumes are lost; a pod without
a controller is evicted too, because its machine is wiped in any case. Such pods are reported.
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
"""HTTP status: a disruption budget does not allow the eviction now."""
_REMEDIES = {
    WORKER: "relax the disruption budget, or end the pod",
    # Their budgets protect the quorum of etcd.
    **dict.fromkeys(
        (CONTROL_PLANE, ARBITER),
        "leave the disruption budget as it is, and repair the pods that it counts on the other nodes",
    ),
}


async def drain(cluster: Cluster, job: Job, status: Status) -> None:
    """Return when all pods that must go are gone. Raises ProviderError with the pods that are left, and why.

    On a node that is not Ready no kubelet can end its pods: they end with their machine.
    """
    node, timeout = job.node, job.drain_timeout_seconds
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    warned = False
    while True:
        if not is_ready(await cluster.node(node)):
            await status.remark(f"node {node} is not Ready: its pods are not evicted, and end with the machine")
            return
        leaving = [pod for pod in await cluster.pods(node) if must_leave(pod)]
        if not leaving:
            return
        lonely = [_name(pod) for pod in leaving if not pod["metadata"].get("ownerReferences")]
        if lonely and not warned:
            warned = True
            await status.remark(f"these pods of {node} have no controller that replaces them: {', '.join(lonely)}")
        kept = await _evict(cluster, leaving)
        text = "; ".join(f"{name}: {why}" for name, why in kept.items())
        if backoff.over:
            raise ProviderError(
                f"node {node} could not be drained within {timeout:g} s: {text}. It stays cordoned; "
                f"{_REMEDIES[job.role]}, or raise `reprovision.drainTimeout`, then run the same command again"
            )
        await status.live(f"draining {node}: {text}")
        await backoff.pause()


def must_leave(pod: Mapping[str, Any]) -> bool:
    """Whether a pod must be evicted: not pods that belong to the node (DaemonSets, static pods), and not finished
    ones."""
    metadata: Mapping[str, Any] = pod["metadata"]
    if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
        return False
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    if any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners):
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


async def _evict(cluster: Cluster, pods: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Evict each pod that is not terminating; returns why pods are still there. Raises ProviderError."""
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
    """The API's message. For a refused eviction, its causes name the budget."""
    causes: Sequence[Mapping[str, Any]] = (answer.body.get("details") or {}).get("causes") or ()
    words = [str(item) for item in (answer.body.get("message"), *(cause.get("message") for cause in causes)) if item]
    return " ".join(words) or answer.problem


def _name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
