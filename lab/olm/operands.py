"""A stand-in for running operators: writes the status that an installation waits for.

Each object is told what its operator's own source tells of one that is well, or why it is not. Nothing else happens: no
disk is taken, no network changed, no node restarted, no registry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import httpx

from lab.errors import LabError
from lab.kubernetes.access import Object, apply, send
from lab.olm.catalog import EXAMPLE_GROUP

_DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=olm.owner.kind%3DClusterServiceVersion"
REGISTRY_NAMESPACE = "openshift-image-registry"
REGISTRY = "/apis/imageregistry.operator.openshift.io/v1/configs"
_KEYS = "image-registry-private-configuration-user"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_PROVISIONER = "topolvm.io"
_PROTECTION = "kubernetes.io/pvc-protection"
_TEMPLATES = (
    "/apis/fence-agents-remediation.medik8s.io/v1alpha1/namespaces/{namespace}/fenceagentsremediationtemplates/{name}"
)


def step(client: httpx.Client) -> None:
    """One look at everything."""
    for deployment in _items(client, _DEPLOYMENTS):
        _write(client, "/apis/apps/v1", "deployments", deployment, _rolled_out(deployment))
    _let_claims_go(client)
    for base, plural, told in _KINDS:
        items = _items(client, f"{base}/{plural}")
        for item in items:
            _write(client, base, plural, item, told(client, item))
        if plural == "lvmclusters":
            _storage_classes(client, items)


def registry_configuration() -> Object:
    """What the image registry operator makes by itself where the platform brings no storage."""
    return {
        "apiVersion": "imageregistry.operator.openshift.io/v1",
        "kind": "Config",
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Removed", "replicas": 1, "storage": {}, "logLevel": "Normal"},
    }


def _items(client: httpx.Client, path: str) -> list[Object]:
    """The objects of a kind; none where it is not known."""
    answer = client.get(path)
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return []
    if answer.is_error:
        raise LabError(f"GET {path}: {answer.status_code} {answer.text}")
    return answer.json()["items"]


def _get(client: httpx.Client, path: str) -> Object | None:
    answer = client.get(path)
    return answer.json() if answer.is_success else None


def _write(client: httpx.Client, base: str, plural: str, item: Object, status: Object) -> None:
    """Write a status that says something new."""
    before = item.get("status") or {}
    if all(before.get(name) == value for name, value in status.items()):
        return
    space = item["metadata"].get("namespace")
    where = f"{base}{f'/namespaces/{space}' if space else ''}/{plural}/{item['metadata']['name']}/status"
    headers = {"Content-Type": "application/merge-patch+json"}
    send(client, "PATCH", where, json={"status": status}, headers=headers)


def _rolled_out(deployment: Object) -> Object:
    """What kube-controller-manager tells of a Deployment whose pods run."""
    count = deployment["spec"].get("replicas", 1)
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count),
        "conditions": [_condition("Available", True, "MinimumReplicasAvailable", "no pod runs: the lab says so")],
    }


def _let_claims_go(client: httpx.Client) -> None:
    """kube-controller-manager's part: a claim that no pod uses goes. A registry's pod would use what its configuration
    names, and no other pod uses any."""
    used = {((each["spec"].get("storage") or {}).get("pvc") or {}).get("claim") for each in _items(client, REGISTRY)}
    for claim in _items(client, "/api/v1/persistentvolumeclaims"):
        metadata = claim["metadata"]
        mounted = metadata["namespace"] == REGISTRY_NAMESPACE and metadata["name"] in used
        if "deletionTimestamp" in metadata and _PROTECTION in metadata.get("finalizers", ()) and not mounted:
            left = [each for each in metadata["finalizers"] if each != _PROTECTION]
            where = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
            headers = {"Content-Type": "application/merge-patch+json"}
            send(client, "PATCH", where, json={"metadata": {"finalizers": left}}, headers=headers)


def _condition(kind: str, holds: bool, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": str(holds), "reason": reason, "message": message}


def _lvm_cluster(client: httpx.Client, item: Object) -> Object:
    """openshift/lvm-operator, api/v1alpha1: LVMClusterStatus."""
    return {"state": "Ready", "ready": True}


def _storage_classes(client: httpx.Client, clusters: list[Object]) -> None:
    """LVM Storage makes a class of each device class, and removes it again."""
    wanted = dict(_classes_of(clusters))
    for name, document in wanted.items():
        if _get(client, f"{_CLASSES}/{name}") is None:
            apply(client, f"{_CLASSES}/{name}", document)
    for found in _items(client, _CLASSES):
        if found["provisioner"] == _PROVISIONER and found["metadata"]["name"] not in wanted:
            send(client, "DELETE", f"{_CLASSES}/{found['metadata']['name']}")


def _classes_of(clusters: list[Object]) -> Iterator[tuple[str, Object]]:
    for cluster in clusters:
        for each in cluster["spec"]["storage"]["deviceClasses"]:
            name = f"lvms-{each['name']}"
            default = {"storageclass.kubernetes.io/is-default-class": str(each.get("default", False)).lower()}
            yield (
                name,
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name, "annotations": default},
                    "provisioner": _PROVISIONER,
                    "volumeBindingMode": "WaitForFirstConsumer",
                },
            )


def _policy(client: httpx.Client, item: Object) -> Object:
    """nmstate/kubernetes-nmstate, api/shared: conditions of a policy."""
    return {"conditions": [_condition("Available", True, "SuccessfullyConfigured")]}


def _health_check(client: httpx.Client, item: Object) -> Object:
    """medik8s/node-healthcheck-operator, api/v1alpha1: the phases of a NodeHealthCheck."""
    wanted = item["spec"]["remediationTemplate"]
    if _get(client, _TEMPLATES.format(**wanted)) is None:
        return {"phase": "Disabled", "reason": "RemediationTemplateNotFound"}
    return {"phase": "Enabled", "reason": "NHC is enabled, no ongoing remediation"}


def _widget(client: httpx.Client, item: Object) -> Object:
    """The lab's own: it is ready unless it says otherwise."""
    ready = item.get("spec", {}).get("ready", True)
    return {"conditions": [_condition("Ready", ready, "AsSpecified")]}


def _registry(client: httpx.Client, item: Object) -> Object:
    """openshift/cluster-image-registry-operator, pkg/operator/conditions.go, and what pkg/storage asks of each kind."""
    spec, problem = item["spec"], ""
    storage = spec.get("storage") or {}
    space = f"/api/v1/namespaces/{REGISTRY_NAMESPACE}"
    removed = spec.get("managementState") == "Removed"
    if claim := (storage.get("pvc") or {}).get("claim"):
        problem = "" if _get(client, f"{space}/persistentvolumeclaims/{claim}") else f"there is no claim {claim}"
    elif "s3" in storage:
        keys = (_get(client, f"{space}/secrets/{_KEYS}") or {}).get("data") or {}
        needed = {"REGISTRY_STORAGE_S3_ACCESSKEY", "REGISTRY_STORAGE_S3_SECRETKEY"}
        problem = "" if needed <= set(keys) else "there are no keys for the object store"
    elif "emptyDir" not in storage:
        problem = "storage backend not configured"
    well = removed or not problem
    reason = "Removed" if removed else "Ready" if well else "StorageNotConfigured"
    return {
        "observedGeneration": item["metadata"]["generation"],
        "storageManaged": False,
        "storage": storage,
        "readyReplicas": spec.get("replicas", 0) if well and not removed else 0,
        "conditions": [
            _condition("Available", well, reason, problem),
            _condition("Progressing", False, reason),
            _condition("Degraded", not well, reason, problem),
        ],
    }


_KINDS: tuple[tuple[str, str, Callable[[httpx.Client, Object], Any]], ...] = (
    ("/apis/lvm.topolvm.io/v1alpha1", "lvmclusters", _lvm_cluster),
    ("/apis/nmstate.io/v1", "nodenetworkconfigurationpolicies", _policy),
    ("/apis/remediation.medik8s.io/v1alpha1", "nodehealthchecks", _health_check),
    (f"/apis/{EXAMPLE_GROUP}/v1", "widgets", _widget),
    ("/apis/imageregistry.operator.openshift.io/v1", "configs", _registry),
)
