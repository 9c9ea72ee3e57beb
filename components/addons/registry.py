"""Where the cluster's own image registry keeps its images.

OpenShift's image registry operator makes its configuration itself, with `managementState: Removed` on platforms that
bring no storage (cluster-image-registry-operator, pkg/storage, and pkg/operator/bootstrap.go). So there is no object to
make: a patch says what of it is ours, and takes these fields over. The patch stays when the settings go, because the
operator does nothing sensible with a configuration that says neither; and with it what it names, the volume with the
images and the keys of the object store.

A claim cannot be changed, and one that a pod uses does not go. So each has a name of its own: another one is there
before the configuration names it, and the one before is left, with its images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import api_provider
from metal_ipi.provider.types import ClusterCredentials, Gate, GateArgs, ObjectReady, Secret

_CLAIM = "image-registry-storage"
NAMESPACE = "openshift-image-registry"
_API_VERSION = "imageregistry.operator.openshift.io/v1"
_PATH = f"/apis/{_API_VERSION}/configs/cluster"
_KEYS = "image-registry-private-configuration-user"
"""The Secret whose keys the operator takes for an object store (pkg/defaults)."""
_TAKEN_OVER = {"pulumi.com/patchForce": "true"}
"""Of what may be there already, as it stays when the settings go."""
_NOT_THE_OPERATORS = {"managementState": "Unmanaged"}
"""Of the storage. The operator says `Managed` of a temporary volume and of a bucket that it made, and does not take it
back when the storage becomes another. When it is removed it would delete what is `Managed`: the claim, or the bucket
with all images (cluster-image-registry-operator, pkg/storage/emptydir, pkg/storage/s3, pkg/storage/pvc)."""


@dataclass(frozen=True, kw_only=True)
class ClaimArgs:
    """A volume for the images."""

    storage_class: str | None
    """None: the cluster's default one."""
    size: int
    """GiB."""
    access: str
    """`ReadWriteOnce` or `ReadWriteMany`."""


@dataclass(frozen=True, kw_only=True)
class RegistryArgs:
    """What the registry is to be."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig, secret."""
    credentials: ClusterCredentials
    """The same, as gates take it."""
    timeout: int
    """Seconds until it is available."""
    managed: bool
    """Whether it runs."""
    replicas: int = 1
    storage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`spec.storage` of its configuration; of a claim it is made here."""
    claim: ClaimArgs | None = None
    keys: Mapping[str, pulumi.Input[str]] | None = None
    """Of an object store, secret: REGISTRY_STORAGE_S3_ACCESSKEY, REGISTRY_STORAGE_S3_SECRETKEY."""
    after: Sequence[pulumi.Resource] = ()
    """What must be done before."""
    cluster: pulumi.Resource | None = None
    """What lasts as long as the cluster."""


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
                kubernetes.core.v1.PersistentVolumeClaim(
                    f"{name}-claim", metadata=wanted["metadata"], spec=wanted["spec"], opts=child
                )
            )
        if args.keys is not None:
            needed.append(
                kubernetes.core.v1.Secret(
                    f"{name}-keys",
                    metadata={"name": _KEYS, "namespace": NAMESPACE, "annotations": _TAKEN_OVER},
                    string_data=pulumi.Output.secret(args.keys),
                    opts=child,
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
    """The claim's manifest."""
    spec: dict[str, Any] = {
        "accessModes": [args.access],
        "resources": {"requests": {"storage": f"{args.size}Gi"}},
    }
    spec |= {"storageClassName": args.storage_class} if args.storage_class else {}
    told = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]
    metadata = {"name": f"{_CLAIM}-{told}", "namespace": NAMESPACE, "annotations": _TAKEN_OVER}
    return {"metadata": metadata, "spec": spec}


def configuration(args: RegistryArgs) -> dict[str, Any]:
    """What of the operator's configuration is ours."""
    if not args.managed:
        # The API wants replicas in any case; and a storage with nothing in it would become null, which it refuses.
        return {
            "managementState": "Removed",
            "replicas": args.replicas,
            "storage": {"emptyDir": {}} | _NOT_THE_OPERATORS,
        }
    storage = (
        {"pvc": {"claim": claim(args.claim)["metadata"]["name"]}} if args.claim is not None else dict(args.storage)
    )
    # A volume that one node mounts can be taken over only when the pod before has let go of it.
    alone = args.claim is not None and args.claim.access == "ReadWriteOnce"
    return {
        "managementState": "Managed",
        "replicas": args.replicas,
        "rolloutStrategy": "Recreate" if alone else "RollingUpdate",
        "storage": storage | _NOT_THE_OPERATORS,
    }
