"""The gate that waits until Cluster API has installed a cluster, by asking the hub.

cluster-api-available   the Cluster's infrastructure is ready, its control plane is initialized, and it is Available;
                        our providers have processed the current generation of its objects, nothing is left to do,
                        and it has the wanted number of workers

It reads the conditions that our providers write on all objects of the cluster, and reports by object and condition what
blocks it. Each failing object is reported once, at first sight, with the logs that the providers gathered. A refusal
ends the wait after ten seconds, a step that keeps failing after a minute.
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
"""An object, and the reason and message of its condition."""
STAGES = ("InfrastructureReady", "ControlPlaneInitialized", "Available")
"""The Cluster's own conditions, in the order in which they become true."""
REFUSED = "Refused"
"""The suffix of our providers' reasons for something that a person must correct."""
FAILING = ("Failing", "StepFailed")
"""Our providers' reasons for a step that failed and is retried."""
_READ_ANEW, _PATIENCE = 10.0, 60.0
"""Seconds: for a refusal, because it may be about the settings before this `up`; and for a step that keeps failing."""


class ClusterApiAvailable(Check):
    """See `Check`."""

    def __init__(self, context: Context, spec: Spec) -> None:
        self._context, self._api = context, Api(spec, keeps=True)
        self._logs = Path(str(spec["logDirectory"])) / context.name if spec.get("logDirectory") else None
        self._told: set[str] = set()
        """Objects that were reported already."""
        self._namespace, self._name = str(spec["namespace"]), str(spec["cluster"])
        self._since: dict[tuple[str, str], float] = {}
        """When each object first had a reason that ends the wait, in seconds since the gate's start."""

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

    async def aclose(self) -> None:
        await self._api.aclose()

    async def _gathered(self) -> str:
        """Write the logs that our providers gathered to the log directory. Returns a text that says where they are, or
        why they could not be read; empty if there are none."""
        if self._logs is None:
            return ""
        found = await self._api.get(f"/api/v1/namespaces/{self._namespace}/secrets/{self._name}-logs")
        if found.problem:
            return "" if found.status == 404 else f"\n  logs that could not be read: {found.problem}"
        written = [
            write(self._logs, Path(name).name, lzma.decompress(base64.b64decode(packed)).decode(errors="replace"))
            for name, packed in (found.body.get("data") or {}).items()
        ]
        return f"\n  logs: {self._logs}" if any(written) else ""


def _limit(reason: str) -> float:
    """For how many seconds an object may have this reason; 0: until the gate's timeout."""
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
        # An object that only waits for others is less informative.
        busy = [why for _, reason, why in obstacles if not reason.startswith("Waiting")]
        text = (
            busy
            or [why for _, _, why in obstacles]
            or [*_unseen(parts, never=True)]
            or [_one_line(conditions.get(pending, {}).get("message"))]
        )
        return Observation(passed=False, text=f"{pending}: {'; '.join(filter(None, text))}")
    # A running cluster stays Available while it is changed.
    refused = [why for _, reason, why in obstacles if reason.endswith(REFUSED)]
    left = [*refused, *_unseen(parts), *_unfinished(parts), *_unequal(deployments)]
    if left:
        return Observation(passed=False, text="; ".join(left))
    return Observation(passed=True, text=f"Cluster {name} is Available")


def _main(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition for an object as a whole."""
    found = conditions_of(item)
    return found.get("Ready") or found.get("Available") or {}


def _unseen(parts: Mapping[str, Answer], *, never: bool = False) -> Iterator[str]:
    """Each object whose current generation our providers have not processed; with `never`, only those that they have
    never processed."""
    for kind, answer in parts.items():
        if answer.problem:
            yield f"{kind}: {answer.problem}"
        for item in answer.body.get("items") or ():
            metadata, observed = item["metadata"], _main(item).get("observedGeneration") or 0
            if never and not observed:
                named = f"{kind} {metadata['name']}"
                yield f"{named}: our providers have not processed it yet; check that they run on the hub"
            elif not never and observed < (metadata.get("generation") or 0) and not metadata.get("deletionTimestamp"):
                yield f"{kind} {metadata['name']} was changed, and our providers have not processed the change yet"


def _unfinished(parts: Mapping[str, Answer]) -> Iterator[str]:
    """Each control plane whose condition AsDeclared is not True: something is left to do, for example checks of
    nodes."""
    for item in parts["OpenShiftControlPlane"].body.get("items") or ():
        condition = conditions_of(item).get("AsDeclared", {})
        if condition.get("status") != "True":
            yield f"OpenShiftControlPlane {item['metadata']['name']}: AsDeclared: {_one_line(condition.get('message'))}"


def _unequal(deployments: Answer) -> Iterator[str]:
    """Each MachineDeployment without the wanted number of up-to-date and available machines."""
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
    """Each of our conditions that is False for an object as a whole, or that reports a refusal."""
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
    """A cluster that was available is not waited for again, unless the hub, the namespace or the name changed."""
    keys = ("url", "namespace", "cluster")
    same = old is not None and all(old.get(key) == spec.get(key) for key in keys)
    return None if same else ClusterApiAvailable(context, spec)
