"""Where the cluster's own image registry keeps its images.

OpenShift's image registry operator creates its own configuration object. On platforms without storage it sets
`managementState: Removed` (cluster-image-registry-operator, pkg/storage, and pkg/operator/bootstrap.go). So this module
patches that object and takes over the fields it sets. The patch is kept when the settings are removed, because the
operator cannot work with a configuration without managementState and storage. What the patch refers to is kept as well:
the volume with the images, and the keys of the object store.

A PersistentVolumeClaim cannot be changed, and one that a pod uses cannot be deleted. So each claim has its own name:
the new claim exists before the configuration refers to it, and the old claim is left with its images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import CoreObject, api_provider
from metal_ipi.provider.types import ClusterCredentials, Gate, GateArgs, ObjectReady, Secret

_CLAIM = "image-registry-storage"
NAMESPACE = "openshift-image-registry"
_API_VERSION = "imageregistry.operator.openshift.io/v1"
_PATH = f"/apis/{_API_VERSION}/configs/cluster"
_KEYS = "image-registry-private-configuration-user"
"""The Secret from which the operator reads the keys of an object store (pkg/defaults)."""
_TAKEN_OVER = {"pulumi.com/patchForce": "true"}
"""Take over objects and fields that exist already: they are kept when the settings are removed."""
_NOT_THE_OPERATORS = {"managementState": "Unmanaged"}
"""Merged into `storage`. The operator sets `Managed` for a temporary volume and for a bucket that it created, and keeps
that value when the storage changes. When the registry is removed, the operator deletes `Managed` storage: the claim, or
the bucket with all images (cluster-image-registry-operator, pkg/storage/emptydir, pkg/storage/s3, pkg/storage/pvc)."""


@dataclass(frozen=True, kw_only=True)
class ClaimArgs:
    """A persistent volume for the images."""

    storage_class: str | None
    """None: the cluster's default storage class."""
    size: int
    """Its size in GiB."""
    access: str
    """The access mode: `ReadWriteOnce` or `ReadWriteMany`."""


@dataclass(frozen=True, kw_only=True)
class RegistryArgs:
    """The desired image registry."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig; secret."""
    credentials: ClusterCredentials
    """Credentials of the same cluster, in the form that gates take."""
    timeout: int
    """Seconds to wait until the registry is available."""
    managed: bool
    """Whether the registry runs."""
    replicas: int = 1
    storage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`spec.storage` of the operator's configuration. Not used when `claim` is given."""
    claim: ClaimArgs | None = None
    keys: Mapping[str, pulumi.Input[str]] | None = None
    """Keys of an object store, secret: REGISTRY_STORAGE_S3_ACCESSKEY, REGISTRY_STORAGE_S3_SECRETKEY."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete first."""
    cluster: pulumi.Resource | None = None
    """A resource that lives as long as the cluster."""


class ImageRegistry(pulumi.ComponentResource):
    """The image registry of one cluster."""

    def __init__(self, name: str, args: RegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:addons:ImageRegistry", name, None, opts)
        wait = f"{args.timeout}s"
        child = pulumi.ResourceOptions(
            parent=self,
            custom_timeouts=pulumi.CustomTimeouts(create=wait, update=wait),
            provider=api_provider(f"{name}-provider", args.kubeconfig, self, upsert=True),
            deleted_with=args.cluster,
            depends_on=list(args.after),
            retain_on_delete=True,
        )
        needed: list[pulumi.Resource] = []
        if args.claim is not None:
            wanted = claim(args.claim)
            needed.append(
                CoreObject(
                    "PersistentVolumeClaim",
                    f"{name}-claim",
                    child,
                    metadata=wanted["metadata"],
                    spec=wanted["spec"],
                )
            )
        if args.keys is not None:
            needed.append(
                CoreObject(
                    "Secret",
                    f"{name}-keys",
                    child,
                    metadata={"name": _KEYS, "namespace": NAMESPACE, "annotations": _TAKEN_OVER},
                    stringData=pulumi.Output.secret(args.keys),
                )
            )
        spec = configuration(args)
        patch = kubernetes.apiextensions.CustomResourcePatch(
            f"{name}-configuration",
            api_version=_API_VERSION,
            kind="Config",
            metadata={"name": "cluster", "annotations": _TAKEN_OVER},
            spec=spec,
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=needed)),
        )
        conditions = ["Available=True", "Progressing=False"]
        Gate(
            f"{name}-available",
            GateArgs(
                spec=ObjectReady(credentials=args.credentials, path=_PATH, conditions=conditions),
                timeout_seconds=args.timeout,
                triggers=[spec],
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[patch]),
        )
        self.register_outputs({"storage": spec.get("storage", {})})


def claim(args: ClaimArgs) -> dict[str, Any]:
    """The manifest of the PersistentVolumeClaim; its name contains a hash of its spec."""
    spec: dict[str, Any] = {
        "accessModes": [args.access],
        "resources": {"requests": {"storage": f"{args.size}Gi"}},
    }
    spec |= {"storageClassName": args.storage_class} if args.storage_class else {}
    told = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]
    metadata = {"name": f"{_CLAIM}-{told}", "namespace": NAMESPACE, "annotations": _TAKEN_OVER}
    return {"metadata": metadata, "spec": spec}


def configuration(args: RegistryArgs) -> dict[str, Any]:
    """The fields of the operator's configuration that this component sets."""
    if not args.managed:
        # The API requires replicas. It refuses an empty storage object, which would be sent as null.
        return {
            "managementState": "Removed",
            "replicas": args.replicas,
            "storage": {"emptyDir": {}} | _NOT_THE_OPERATORS,
        }
    storage = (
        {"pvc": {"claim": claim(args.claim)["metadata"]["name"]}} if args.claim is not None else dict(args.storage)
    )
    # A ReadWriteOnce volume can be mounted by the new pod only after the old pod has released it.
    alone = args.claim is not None and args.claim.access == "ReadWriteOnce"
    return {
        "managementState": "Managed",
        "replicas": args.replicas,
        "rolloutStrategy": "Recreate" if alone else "RollingUpdate",
        "storage": storage | _NOT_THE_OPERATORS,
    }
