"""The gate that asks a hub how far Cluster API is with a cluster.

cluster-api-available   the Cluster's infrastructure is ready, its control plane is initialized, and it is Available

Of all objects of the cluster the conditions are read that our providers write: what stands in the way is told by object
and condition. What waiting does not mend ends the wait at once, and a step that goes on failing does so after a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from metal_ipi.provider.gates import Check, Observation, Spec
from metal_ipi.provider.gates.https import Answer, Api, conditions_of
from metal_ipi.provider.resource import Context

_CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/{}"
_LABEL = "cluster.x-k8s.io/cluster-name"
_OURS = {
    "MetalIpiCluster": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/metalipiclusters",
    "OpenShiftControlPlane": "/apis/controlplane.cluster.x-k8s.io/v1alpha1/namespaces/{}/openshiftcontrolplanes",
    "MetalIpiMachine": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/metalipimachines",
    "OpenShiftConfig": "/apis/bootstrap.cluster.x-k8s.io/v1alpha1/namespaces/{}/openshiftconfigs",
}
STAGES = ("InfrastructureReady", "ControlPlaneInitialized", "Available")
"""The Cluster's own conditions, in the order in which they come true."""
FINAL = ("Refused", "Failed")
"""How reasons of our providers end that somebody has to do something about."""
FAILING = "Failing"
"""Their reason for a step that failed, and that they try again."""
_PATIENCE = 60.0
"""Seconds for which a step may fail, over and over again."""


class ClusterApiAvailable:
    """See `Check`."""

    def __init__(self, spec: Spec) -> None:
        self._api = Api(spec)
        self._namespace, self._name = str(spec["namespace"]), str(spec["cluster"])
        self._failing: dict[str, float] = {}
        """Since when each object has a step that fails, in seconds of the wait."""

    async def look(self, elapsed: float) -> Observation:
        space = _CORE.format(self._namespace)
        chosen = f"?labelSelector={_LABEL}%3D{self._name}"
        cluster, *found = await asyncio.gather(
            self._api.get(f"{space}/clusters/{self._name}"),
            *(self._api.get(path.format(self._namespace) + chosen) for path in _OURS.values()),
        )
        parts = dict(zip(_OURS, found, strict=True))
        seen = _evaluated(self._name, cluster, parts)
        failing = {name: why for name, reason, why in _obstacles(parts) if reason == FAILING}
        self._failing = {name: self._failing.get(name, elapsed) for name in failing}
        long = [name for name, since in self._failing.items() if elapsed - since >= _PATIENCE]
        if seen.passed or seen.fatal or not long:
            return seen
        fatal = f"{failing[long[0]]} (it has failed for {_PATIENCE:.0f} s, and is tried again by the hub)"
        return Observation(passed=False, text=seen.text, fatal=fatal)


def _evaluated(name: str, cluster: Answer, parts: Mapping[str, Answer]) -> Observation:
    if cluster.status == 404:
        return Observation(passed=False, text=f"the hub answers; it has no Cluster {name}")
    if cluster.problem:
        return Observation(passed=False, text=cluster.problem)
    conditions = conditions_of(cluster.body)
    obstacles = list(_obstacles(parts))
    final = next((why for _, reason, why in obstacles if reason.endswith(FINAL)), None)
    pending = [stage for stage in STAGES if conditions.get(stage, {}).get("status") != "True"]
    if not pending:
        return Observation(passed=True, text=f"Cluster {name} is Available")
    told = [why for _, _, why in obstacles] or [_one_line(conditions.get(pending[0], {}).get("message"))]
    return Observation(passed=False, text=f"{pending[0]}: {'; '.join(filter(None, told))}", fatal=final)


def _obstacles(parts: Mapping[str, Answer]) -> Iterator[tuple[str, str, str]]:
    """Object, reason and words of each condition of ours that is False, and stands for the whole of its object."""
    for kind, answer in parts.items():
        for item in answer.body.get("items") or ():
            found = conditions_of(item)
            main = found.get("Ready") or found.get("Available") or {}
            if main.get("status") == "False":
                name, reason = f"{kind} {item['metadata']['name']}", str(main.get("reason") or "")
                yield name, reason, f"{name}: {reason}: {_one_line(main.get('message'))}"


def _one_line(message: Any) -> str:
    return " ".join(str(message or "").split())


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """What came true is looked at again only where another cluster, or another hub, is asked for."""
    keys = ("url", "namespace", "cluster")
    return None if old is not None and all(old.get(key) == spec.get(key) for key in keys) else ClusterApiAvailable(spec)
