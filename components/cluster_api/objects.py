"""The objects of one cluster on a management cluster of Cluster API. Pure functions from plain data to manifests.

They use Cluster API's v1beta2 and our providers' v1alpha1. The name of a machine template contains a hash of its
content: the controllers refuse a changed template under an old name, and replace machines when the name changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

Object = dict[str, Any]

CORE = "cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE, BOOTSTRAP, CONTROL_PLANE = (
    f"{name}.cluster.x-k8s.io" for name in ("infrastructure", "bootstrap", "controlplane")
)
VERSION = "v1alpha1"
API_PORT = 6443
FOLDER = "metal-ipi.cluster.x-k8s.io/manifests"
"""The annotation of a Secret with manifests: for which folder of the installer's its files are."""
FOLDERS = ("openshift", "manifests")
"""What it may say. Both end in one folder on the bootstrap machine."""
MOVED = {"clusterctl.cluster.x-k8s.io/move": ""}
"""The label of what clusterctl takes along when the cluster moves to another hub, although nobody owns it."""
_LARGEST = 1 << 20
"""Bytes of what a Secret may hold (Kubernetes, MaxSecretSize)."""
_CONTROL_PLANE_POOL, _WORKER_POOL = "control-plane", "worker"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The cluster. A `str` in place of a number or a mapping is a variable of clusterctl."""

    name: str
    """The first label of its domain, and the name of the Cluster object."""
    namespace: str
    domain: str
    """`<name>.<base domain>`."""
    version: str
    """`v<openshiftVersion>`."""
    control_plane: int | str
    """The number of machines."""
    workers: int | str
    settings: Mapping[str, Any] | str
    """The settings of the stack file without secrets and without the prefix `metal-ipi:`."""
    pod_networks: Sequence[str] = ()
    service_networks: Sequence[str] = ()
    manifests: Mapping[str, str] | str = field(default_factory=dict[str, str])
    """Files that the installer takes in beside its own, by name; secret. The variable stands for the names of
    Secrets."""
    own_namespace: bool = True
    """Whether the Namespace is one of the objects."""

    @property
    def secret(self) -> str:
        """The name of the Secret with the secret settings, keyed by path: `platform.servers.0.bmc.password`."""
        return f"{self.name}-settings"


def outputs_secret(cluster: str) -> str:
    """The name of the Secret in which our providers write the outputs that `up` would have, as JSON under the key
    `value`."""
    return f"{cluster}-outputs"


def logs_secret(cluster: str) -> str:
    """The name of the Secret in which our providers write the logs of failed steps (cluster_api/logs.py)."""
    return f"{cluster}-logs"


def manifest_secrets(wanted: Wanted) -> list[Object]:
    """The Secrets with the user's manifests, as few as will do, each named after what is in it."""
    parts: list[dict[str, str]] = []
    left = 0
    for name, text in [] if isinstance(wanted.manifests, str) else sorted(wanted.manifests.items()):
        size = len(text.encode())
        if size > left:
            parts.append({})
            left = _LARGEST
        parts[-1][name] = text
        left -= size
    return [_manifest_secret(part, wanted) for part in parts]


def objects(wanted: Wanted) -> list[Object]:
    """All objects except the Secrets, in an order in which each comes after those it refers to."""
    machines = {pool: _machine_template(wanted, pool) for pool in (_CONTROL_PLANE_POOL, _WORKER_POOL)}
    config = _manifest(
        BOOTSTRAP, "OpenShiftConfigTemplate", f"{wanted.name}-worker", wanted, {"template": {"spec": {}}}
    )
    # Without workers no template for workers is needed.
    of_workers = [] if wanted.workers == 0 else [machines[_WORKER_POOL], config]
    deployments = [_workers(wanted, machines[_WORKER_POOL], config)] if of_workers else []
    infrastructure = _manifest(
        INFRASTRUCTURE,
        "MetalIpiCluster",
        wanted.name,
        wanted,
        {
            "controlPlaneEndpoint": {"host": f"api.{wanted.domain}", "port": API_PORT},
            "settings": wanted.settings,
            "secretsRef": {"name": wanted.secret},
        },
    )
    named = [{"name": each["metadata"]["name"]} for each in manifest_secrets(wanted)]
    manifests = wanted.manifests if isinstance(wanted.manifests, str) else named
    control_plane = _manifest(
        CONTROL_PLANE,
        "OpenShiftControlPlane",
        wanted.name,
        wanted,
        {
            "replicas": wanted.control_plane,
            "version": wanted.version,
            "machineTemplate": {"spec": {"infrastructureRef": _reference(machines[_CONTROL_PLANE_POOL])}},
            **({"manifestSecretRefs": manifests} if manifests else {}),
        },
    )
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace}}
    return [
        *([space] if wanted.own_namespace else []),
        infrastructure,
        machines[_CONTROL_PLANE_POOL],
        *of_workers,
        control_plane,
        _cluster(wanted, infrastructure, control_plane),
        *deployments,
    ]


def template(namespace: str = "${NAMESPACE}") -> str:
    """clusterctl's cluster-template.yaml: the same objects with clusterctl's variables.

    METAL_IPI_SETTINGS is the settings as JSON on one line; CLUSTER_DOMAIN is `<clusterName>.<baseDomain>`;
    METAL_IPI_MANIFESTS is the names of Secrets with manifests, `[{"name": "..."}]`.
    """
    wanted = Wanted(
        name="${CLUSTER_NAME}",
        namespace=namespace,
        domain="${CLUSTER_DOMAIN}",
        version="${KUBERNETES_VERSION}",
        control_plane="${CONTROL_PLANE_MACHINE_COUNT}",
        workers="${WORKER_MACHINE_COUNT}",
        settings="${METAL_IPI_SETTINGS}",
        manifests="${METAL_IPI_MANIFESTS:=[]}",
        own_namespace=False,
    )
    text = yaml.safe_dump_all(objects(wanted), sort_keys=False)
    plain = r"CONTROL_PLANE_MACHINE_COUNT|WORKER_MACHINE_COUNT|METAL_IPI_SETTINGS|METAL_IPI_MANIFESTS:=\[\]"
    return re.sub(rf"'?(\$\{{(?:{plain})\}})'?", r"\1", text)


def _cluster(wanted: Wanted, infrastructure: Object, control_plane: Object) -> Object:
    networks = {"pods": wanted.pod_networks, "services": wanted.service_networks}
    blocks = {name: {"cidrBlocks": list(found)} for name, found in networks.items() if found}
    spec = {
        **({"clusterNetwork": blocks} if blocks else {}),
        "infrastructureRef": _reference(infrastructure),
        "controlPlaneRef": _reference(control_plane),
    }
    return {"apiVersion": CORE, "kind": "Cluster", "metadata": _metadata(wanted.name, wanted), "spec": spec}


def _workers(wanted: Wanted, machines: Object, config: Object) -> Object:
    machine = {
        "clusterName": wanted.name,
        "version": wanted.version,
        "bootstrap": {"configRef": _reference(config)},
        "infrastructureRef": _reference(machines),
    }
    name = f"{wanted.name}-worker"
    labels = {**_labels(wanted), "cluster.x-k8s.io/deployment-name": name}
    spec = {
        "clusterName": wanted.name,
        "replicas": wanted.workers,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": machine},
    }
    # Skip the preflight checks: the server that is lent to the bootstrap machine needs its Machine before there is a
    # control plane.
    metadata = {**_metadata(name, wanted), "annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}}
    return {"apiVersion": CORE, "kind": "MachineDeployment", "metadata": metadata, "spec": spec}


def _machine_template(wanted: Wanted, pool: str) -> Object:
    inner = {"spec": {"pool": pool}}
    name = f"{wanted.name}-{pool}-{_digest(inner)}"
    return _manifest(INFRASTRUCTURE, "MetalIpiMachineTemplate", name, wanted, {"template": inner})


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def _manifest(group: str, kind: str, name: str, wanted: Wanted, spec: Object) -> Object:
    return {"apiVersion": f"{group}/{VERSION}", "kind": kind, "metadata": _metadata(name, wanted), "spec": spec}


def _manifest_secret(files: Mapping[str, str], wanted: Wanted) -> Object:
    metadata = _metadata(f"{wanted.name}-manifests-{_digest(files)}", wanted)
    metadata |= {"labels": {**_labels(wanted), **MOVED}, "annotations": {FOLDER: FOLDERS[0]}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(files)}


def _metadata(name: str, wanted: Wanted) -> Object:
    return {"name": name, "namespace": wanted.namespace, "labels": _labels(wanted)}


def _labels(wanted: Wanted) -> Object:
    return {"cluster.x-k8s.io/cluster-name": wanted.name}


def _reference(of: Object) -> Object:
    return {"apiGroup": of["apiVersion"].partition("/")[0], "kind": of["kind"], "name": of["metadata"]["name"]}
