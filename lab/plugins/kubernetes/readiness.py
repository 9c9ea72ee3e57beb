"""What to wait for after an object is applied: its annotation `pulumi.com/waitFor`, or the default of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.kubernetes.objects import Object, annotations_of

Look = Callable[[Object, Object | None], str | None]
"""Says what is still missing, None when nothing is: of an object, and of the one that `related_to` names for it."""

_CONDITION = re.compile(r"condition=(?P<type>[A-Za-z0-9./-]+?)(=(?P<status>\w+))?")
_PATH = re.compile(r"jsonpath=\{(?P<path>(\.[A-Za-z0-9_-]+)+)\}(=(?P<value>.+))?")


def look_of(document: Object) -> Look:
    """How to tell that the object is ready. Raises NotInTheLab for conditions that are not implemented."""
    wanted = annotations_of(document).get("pulumi.com/waitFor")
    if wanted is None:
        return _BY_KIND.get(str(document["kind"]), lambda live, related: None)
    if found := _CONDITION.fullmatch(str(wanted)):
        kind, status = found["type"], found["status"] or "True"
        return lambda live, _: _condition(live, kind, status)
    if found := _PATH.fullmatch(str(wanted)):
        path, value = found["path"].strip(".").split("."), found["value"]
        return lambda live, _: _field(live, path, value)
    raise NotInTheLab("kubernetes", f"the annotation pulumi.com/waitFor with the value {wanted}")


def related_to(live: Object) -> Object | None:
    """Another object that tells whether this one is ready: which of a Service's pods answer, how a claim is bound."""
    metadata, spec = live["metadata"], live.get("spec") or {}
    if annotations_of(live).get("pulumi.com/waitFor") is not None:
        return None
    if live["kind"] == "Service":
        where = {"name": metadata["name"], "namespace": metadata.get("namespace")}
        return {"apiVersion": "v1", "kind": "Endpoints", "metadata": where}
    if live["kind"] == "Job" and (live.get("status") or {}).get("failed"):
        chosen = {"selector": f"batch.kubernetes.io/job-name={metadata['name']}"}
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {"namespace": metadata["namespace"]}, **chosen}
    if live["kind"] == "PersistentVolumeClaim" and spec.get("storageClassName"):
        name = {"name": spec["storageClassName"]}
        return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": name}
    return None


def _namespace(live: Object, related: Object | None) -> str | None:
    phase = (live.get("status") or {}).get("phase")
    return None if phase == "Active" else f"it is {phase}, not Active"


def _deployment(live: Object, related: Object | None) -> str | None:
    return _rolled_out(live, "availableReplicas")


def _stateful_set(live: Object, related: Object | None) -> str | None:
    status = live.get("status") or {}
    if reason := _rolled_out(live, "readyReplicas"):
        return reason
    if live["metadata"].get("generation", 1) > 1 and status.get("currentRevision") != status.get("updateRevision"):
        return "its pods are not all of the latest revision"
    return None


def _rolled_out(live: Object, ready: str) -> str | None:
    """Whether a controller has seen the latest generation, and all pods are of it and ready."""
    status, wanted = live.get("status") or {}, (live.get("spec") or {}).get("replicas", 1)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return "its controller has not seen it yet"
    updated, there = status.get("updatedReplicas", 0), status.get(ready, 0)
    if updated == wanted == there and status.get("replicas", 0) == wanted:
        return None
    return f"{there} of {wanted} pods are ready, {updated} of the latest revision"


def completed(job: Object) -> bool:
    """Whether a Job has succeeded."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Complete" and each.get("status") == "True" for each in conditions)


def _job(live: Object, related: Object | None) -> str | None:
    status = live.get("status") or {}
    if completed(live):
        return None
    for each in status.get("conditions") or []:
        if each.get("status") == "True" and each.get("type") == "Failed":
            told = [f"Job {live['metadata']['name']} failed: [{each.get('reason')}] {each.get('message')}"]
            told += [line for pod in (related or {}).get("items") or [] if (line := _pod_problem(pod))]
            raise PluginError("\n".join(told))
    return f"it has not succeeded; {status.get('active', 0)} pods run, {status.get('failed', 0)} failed"


def _pod_problem(pod: Object) -> str:
    """What the containers of a pod have ended with, as officially (provider/pkg/await/checker/pod/check.go)."""
    status = pod.get("status") or {}
    ready = [each for each in status.get("conditions") or [] if each.get("type") == "Ready"]
    ended = [(each.get("state") or {}).get("terminated") or {} for each in status.get("containerStatuses") or []]
    told = [f"[{each['reason']}] {each['message']}" for each in ended if each.get("reason") and each.get("message")]
    name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
    return f"[Pod {name}]: {''.join(each.get('message') or '' for each in ready)}{' '.join(told)}" if told else ""


def _service(live: Object, related: Object | None) -> str | None:
    spec = live.get("spec") or {}
    if spec.get("type") == "LoadBalancer" and not ((live.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        return "it has no address of a load balancer"
    if spec.get("clusterIP") == "None" or not spec.get("selector"):
        return None
    answering = [each for each in (related or {}).get("subsets") or [] if each.get("addresses")]
    return None if answering else "none of its pods is ready"


def _claim(live: Object, related: Object | None) -> str | None:
    phase = (live.get("status") or {}).get("phase")
    late = (related or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    if phase == "Bound" or (late and phase == "Pending"):
        return None
    return f"it is {phase}, not Bound"


_BY_KIND: Mapping[str, Look] = {
    "Namespace": _namespace,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
}
"""As officially (pulumi-kubernetes, provider/pkg/await)."""


def _condition(live: Object, kind: str, status: str) -> str | None:
    conditions: list[Object] = (live.get("status") or {}).get("conditions") or []
    found = [each for each in conditions if str(each.get("type")).lower() == kind.lower()]
    if not found:
        return f"it has no condition {kind}"
    if str(found[0].get("status")).lower() == status.lower():
        return None
    why = ": ".join(str(found[0][part]) for part in ("reason", "message") if found[0].get(part))
    return f"its condition {kind} is {found[0].get('status')}, not {status}" + (f" ({why})" if why else "")


def _field(live: Object, path: list[str], value: str | None) -> str | None:
    inner: object = live
    for part in path:
        inner = inner.get(part) if isinstance(inner, dict) else None  # pyright: ignore[reportUnknownMemberType]
    name = ".".join(path)
    if inner is None:
        return f"it has no {name}"
    return None if value is None or str(inner) == value else f"its {name} is {inner}, not {value}"
