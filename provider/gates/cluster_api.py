"""The gate that asks a hub how far Cluster API is with a cluster.

cluster-api-available   the Cluster's infrastructure is ready, its control plane is initialized, and it is Available

                        our providers have looked at its objects as they are now, nothing of it is left to be done, and
                        it has as many workers as are wanted

It reads the conditions that our providers write on all objects of the cluster, and tells by object and condition what
stands in the way. Each object that fails is told once, at the first look, with the logs that the providers gathered.
What is refused ends the wait after ten seconds, a step that goes on failing after a minute.
"""

from __future__ import annotations

import asyncio
import base64
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from metal_ipi.provider.gates import Check, Observation, Spec
from metal_ipi.provider.gates.https import Answer, Api, conditions_of
from metal_ipi.provider.gates.logs import write
from metal_ipi.provider.resource import Context

_CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/{}"
_DEPLOYMENTS = _CORE + "/machinedeployments"
_LABEL = "cluster.x-k8s.io/cluster-name"
_OURS = {
    "MetalIpiCluster": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/metalipiclusters",
    "OpenShiftControlPlane": "/apis/controlplane.cluster.x-k8s.io/v1alpha1/namespaces/{}/openshiftcontrolplanes",
    "MetalIpiMachine": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/metalipimachines",
    "OpenShiftConfig": "/apis/bootstrap.cluster.x-k8s.io/v1alpha1/namespaces/{}/openshiftconfigs",
}
Obstacle = tuple[str, str, str]
"""An object, and reason and message of its condition."""
STAGES = ("InfrastructureReady", "ControlPlaneInitialized", "Available")
"""The Cluster's own conditions, in the order in which they come true."""
REFUSED = "Refused"
"""How reasons of our providers end that somebody has to do something about."""
FAILING = ("Failing", "StepFailed")
"""Their reasons for a step that failed, and that they try again."""
_READ_ANEW, _PATIENCE = 10.0, 60.0
"""Seconds for which something may be refused, which may be of what was there before this `up`; and for which a step may
fail, over and over again."""


class ClusterApiAvailable:
    """See `Check`."""

    def __init__(self, context: Context, spec: Spec) -> None:
        self._context, self._api = context, Api(spec)
        self._logs = Path(str(spec["logDirectory"])) / context.name if spec.get("logDirectory") else None
        self._told: set[str] = set()
        """What was remarked already."""
        self._namespace, self._name = str(spec["namespace"]), str(spec["cluster"])
        self._since: dict[tuple[str, str], float] = {}
        """Since when each object has a reason to end the wait, in seconds of the wait."""

    async def look(self, elapsed: float) -> Observation:
        chosen = f"?labelSelector={_LABEL}%3D{self._name}"
        cluster, *found = await asyncio.gather(
            self._api.get(f"{_CORE.format(self._namespace)}/clusters/{self._name}"),
            *(self._api.get(path.format(self._namespace) + chosen) for path in (*_OURS.values(), _DEPLOYMENTS)),
        )
        *ours, deployments = found
        parts = dict(zip(_OURS, ours, strict=True))
        obstacles = list(_obstacles(parts))
        seen = _evaluated(self._name, cluster, parts, deployments, obstacles)
        if cluster.problem:
            return seen
        patience = {(name, reason): limit for name, reason, _ in obstacles if (limit := _limit(reason))}
        self._since = {each: self._since.get(each, elapsed) for each in patience}
        if seen.passed:
            return seen
        for name, reason, why in obstacles:
            limit = patience.get((name, reason))
            if limit and name not in self._told:
                self._told.add(name)
                await self._context.status.remark(f"{why}{await self._gathered()}")
            if limit and elapsed - self._since[name, reason] >= limit:
                again = (
                    f" (it has failed for {limit:.0f} s, and is tried again by the hub)" if reason in FAILING else ""
                )
                return Observation(passed=False, text=seen.text, fatal=f"{why}{again}{await self._gathered()}")
        return seen

    async def _gathered(self) -> str:
        """Write down here what our providers gathered of machines. Says where, or why it cannot be had; empty: there is
        nothing."""
        if self._logs is None:
            return ""
        found = await self._api.get(f"/api/v1/namespaces/{self._namespace}/secrets/{self._name}-logs")
        if found.problem:
            return "" if found.status == 404 else f"\n  logs that could not be had: {found.problem}"
        written = [
            write(self._logs, Path(name).name, lzma.decompress(base64.b64decode(packed)).decode(errors="replace"))
            for name, packed in (found.body.get("data") or {}).items()
        ]
        return f"\n  logs: {self._logs}" if any(written) else ""


def _limit(reason: str) -> float:
    """For how many seconds an object may have a reason; 0: as long as the gate waits."""
    return _READ_ANEW if reason.endswith(REFUSED) else _PATIENCE if reason in FAILING else 0.0


def _evaluated(
    name: str, cluster: Answer, parts: Mapping[str, Answer], deployments: Answer, obstacles: Sequence[Obstacle]
) -> Observation:
    if cluster.status == 404:
        return Observation(passed=False, text=f"the hub answers; it has no Cluster {name}")
    if cluster.problem:
        return Observation(passed=False, text=cluster.problem)
    conditions = conditions_of(cluster.body)
    pending = next((stage for stage in STAGES if conditions.get(stage, {}).get("status") != "True"), None)
    if pending is not None:
        # Who only waits for others says less than they.
        busy = [why for _, reason, why in obstacles if not reason.startswith("Waiting")]
        told = (
            busy
            or [why for _, _, why in obstacles]
            or [*_unseen(parts, never=True)]
            or [_one_line(conditions.get(pending, {}).get("message"))]
        )
        return Observation(passed=False, text=f"{pending}: {'; '.join(filter(None, told))}")
    # A cluster that stands is Available while it is changed.
    refused = [why for _, reason, why in obstacles if reason.endswith(REFUSED)]
    left = [*refused, *_unseen(parts), *_unfinished(parts), *_unequal(deployments)]
    if left:
        return Observation(passed=False, text="; ".join(left))
    return Observation(passed=True, text=f"Cluster {name} is Available")


def _main(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition that stands for the whole of an object of ours."""
    found = conditions_of(item)
    return found.get("Ready") or found.get("Available") or {}


def _unseen(parts: Mapping[str, Answer], *, never: bool = False) -> Iterator[str]:
    """Each object that was changed, and that our providers have not looked at since; with `never`, only those that they
    have not looked at yet."""
    for kind, answer in parts.items():
        if answer.problem:
            yield f"{kind}: {answer.problem}"
        for item in answer.body.get("items") or ():
            metadata, observed = item["metadata"], _main(item).get("observedGeneration") or 0
            if never and not observed:
                yield f"{kind} {metadata['name']}: our providers have not looked at it yet; do they run on the hub?"
            elif not never and observed < (metadata.get("generation") or 0) and not metadata.get("deletionTimestamp"):
                yield f"{kind} {metadata['name']} was changed, and our providers have not looked at it since"


def _unfinished(parts: Mapping[str, Answer]) -> Iterator[str]:
    """Each control plane of which the condition AsDeclared is not True: something of its cluster is left to be done,
    for example the checks of nodes."""
    for item in parts["OpenShiftControlPlane"].body.get("items") or ():
        told = conditions_of(item).get("AsDeclared", {})
        if told.get("status") != "True":
            yield f"OpenShiftControlPlane {item['metadata']['name']}: AsDeclared: {_one_line(told.get('message'))}"


def _unequal(deployments: Answer) -> Iterator[str]:
    """Each MachineDeployment that has not as many machines, as they should be, as it is to have."""
    if deployments.problem:
        yield f"MachineDeployment: {deployments.problem}"
    for item in deployments.body.get("items") or ():
        status, wanted = item.get("status") or {}, (item.get("spec") or {}).get("replicas")
        counted = [status.get(each) or 0 for each in ("replicas", "upToDateReplicas", "availableReplicas")]
        observed = (status.get("observedGeneration") or 0) >= (item["metadata"].get("generation") or 0)
        if not observed or any(each != wanted for each in counted):
            made, current, available = counted
            name = item["metadata"]["name"]
            yield (
                f"MachineDeployment {name}: {wanted} machines are wanted; it has {made}, of which {current} are up to"
                f" date and {available} are available"
            )


def _obstacles(parts: Mapping[str, Answer]) -> Iterator[Obstacle]:
    """Each condition of ours that is False and stands for the whole of its object, or that says that something is
    refused."""
    for kind, answer in parts.items():
        for item in answer.body.get("items") or ():
            name, main = f"{kind} {item['metadata']['name']}", _main(item)
            for each in conditions_of(item).values():
                reason = str(each.get("reason") or "")
                if (each is main and each.get("status") == "False") or reason.endswith(REFUSED):
                    yield name, reason, f"{name}: {reason}: {_one_line(each.get('message'))}"


def _one_line(message: Any) -> str:
    return " ".join(str(message or "").split())


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """What came true is looked at again only where another cluster, or another hub, is asked for."""
    keys = ("url", "namespace", "cluster")
    same = old is not None and all(old.get(key) == spec.get(key) for key in keys)
    return None if same else ClusterApiAvailable(context, spec)
