"""What all objects on the hub share. Pure functions from plain data to manifests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]

PART_OF = "metal-ipi-provisioning"
_USER = 10475
"""The user id of all programs; no user of the images has it."""

API_VERSIONS: Mapping[str, str] = {
    "Namespace": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ServiceAccount": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
}


def manifest(kind: str, name: str, namespace: str, component: str, **rest: Any) -> Object:
    """An object; `component` names the part of the service to which it belongs."""
    metadata = {"name": name, "namespace": namespace, "labels": labels(component)}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, **rest}


_PART = {"app.kubernetes.io/part-of": PART_OF, "app.kubernetes.io/managed-by": "metal-ipi"}


def labels(component: str) -> dict[str, str]:
    """The labels of all objects of a part."""
    return {**selector(component), **_PART}


def selector(component: str) -> dict[str, str]:
    """The labels that select a part's pods."""
    return {"app.kubernetes.io/name": PART_OF, "app.kubernetes.io/component": component}


def namespace(name: str, *, privileged: bool) -> Object:
    """The Namespace. It is privileged only if a part (DHCP, the operator) runs in the nodes' own network."""
    level = "privileged" if privileged else "restricted"
    levels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**_PART, **levels}}}


def pod(component: str, spec: Mapping[str, Any], annotations: Mapping[str, Any] | None = None) -> Object:
    """A pod template: an unprivileged user, and no token for the API server."""
    return {
        # The API drops an empty map: after a refresh `up` would have one to add.
        "metadata": {"labels": labels(component), **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **spec,
        },
    }


def pods_of(component: str, template: Object) -> Object:
    """The part of a workload's spec with the selector and the template of its pods."""
    return {"selector": {"matchLabels": selector(component)}, "template": template}


def container(name: str, image: str, command: Sequence[str], mounts: Sequence[Object], **rest: Any) -> Object:
    """A container without privileges and with a read-only root file system; it can write to its volumes only."""
    return {
        "name": name,
        "image": image,
        "command": list(command),
        "volumeMounts": list(mounts),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **rest,
    }


def mount(name: str, path: str, *, sub_path: str | None = None, read_only: bool = False) -> Object:
    """The mount of a volume in a container."""
    return {
        "name": name,
        "mountPath": path,
        **({"subPath": sub_path} if sub_path else {}),
        **({"readOnly": True} if read_only else {}),
    }


def file(volume: str, path: str) -> Object:
    """A read-only mount of one file of a volume; the file has the same name in the container."""
    return mount(volume, path, sub_path=path.rpartition("/")[2], read_only=True)


def empty(name: str) -> Object:
    """A volume that exists as long as its pod."""
    return {"name": name, "emptyDir": {}}


def of_map(name: str, config_map: str) -> Object:
    """A volume with the content of a ConfigMap."""
    return {"name": name, "configMap": {"name": config_map}}


def of_secret(name: str, secret: str, keys: Mapping[str, str] | None = None) -> Object:
    """A volume with the content of a Secret, or of some keys of it: key → file. Only the pod's group can read it."""
    items = [{"key": key, "path": path} for key, path in keys.items()] if keys else None
    return {
        "name": name,
        "secret": {"secretName": secret, "defaultMode": 0o440, **({"items": items} if items else {})},
    }


def claim(name: str, storage: str, storage_class: str | None) -> Object:
    """The spec of a PersistentVolumeClaim that one node can mount."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}},
        **({"storageClassName": storage_class} if storage_class else {}),
    }


def https_probe(port: int, path: str) -> Object:
    """A probe: whether the server answers. Kubernetes does not verify its certificate."""
    return {"httpGet": {"scheme": "HTTPS", "port": port, "path": path}, "periodSeconds": 5, "timeoutSeconds": 5}


def published(chosen: Mapping[str, str], name: str, port: int, where: int | str) -> Object:
    """The spec of a Service reached from outside: at a port of each node, or at a load balancer's address.

    `name` is also the name of the container's port.
    """
    ports = {"name": name, "port": port, "targetPort": name}
    if isinstance(where, int):
        return {"type": "NodePort", "selector": dict(chosen), "ports": [{**ports, "nodePort": where}]}
    return {
        "type": "LoadBalancer",
        "loadBalancerIP": where,
        "selector": dict(chosen),
        "ports": [ports],
    }


def job(
    name: str,
    namespace_: str,
    component: str,
    spec: Mapping[str, Any],
    annotations: Mapping[str, Any] | None = None,
    *,
    again: int = 30,
) -> Object:
    """A Job that is retried until it succeeds. Its limit counts retries, not time: the `up` that waits for it has a
    timeout."""
    template = pod(component, {"restartPolicy": "OnFailure", **spec}, annotations)
    return manifest("Job", name, namespace_, component, spec={"backoffLimit": again, "template": template})


def digest(*texts: str) -> str:
    """A digest of texts: 16 hexadecimal digits."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
