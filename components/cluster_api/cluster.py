"""The component that applies a cluster's objects to a hub, and waits until Cluster API reports the cluster as
available."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core import v1 as core

from metal_ipi.components.cluster_api.objects import (
    MOVED,
    Object,
    Wanted,
    manifest_secrets,
    objects,
    outputs_secret,
)
from metal_ipi.components.install.assets import credentials
from metal_ipi.provider.types import ClusterApiAvailable, ClusterCredentials, Gate, GateArgs, GateLogs, Secret

_LOST_FOR_GOOD = frozenset({"Namespace", "Secret", "MetalIpiCluster", "OpenShiftControlPlane", "Cluster"})
"""Kinds that are protected: deleting one would delete the cluster, or what is needed to give its machines back."""
_MANIFESTS = "manifests-"
"""How the Pulumi names of Secrets with manifests begin."""
_LEAVES = "2h"
"""How long deletion may take: machines are given back one after another."""


@dataclass(frozen=True, kw_only=True)
class ManagedClusterArgs:
    """Arguments of `ManagedCluster`."""

    kubeconfig: pulumi.Input[Secret[str]]
    """The hub's kubeconfig, with the rights to create the namespace and objects in it. Empty in a rehearsal."""
    wanted: Wanted
    secrets: Mapping[str, pulumi.Input[Secret[str]]]
    """Secret settings, by path: `platform.servers.0.bmc.password`."""
    timeout_seconds: float
    """Seconds until the cluster must be available."""
    log_directory: str
    """The absolute directory for logs that the providers gathered from machines, written when a step fails."""
    protect: bool = True
    """Whether the objects that hold the cluster are protected from deletion and replacement."""


class ManagedCluster(pulumi.ComponentResource):
    """A cluster that Cluster API installs on a hub with our providers."""

    kubeconfig: pulumi.Output[str]
    """The cluster's kubeconfig, known once it is available. Secret."""
    outputs: pulumi.Output[dict[str, Any]]
    """The outputs that the stack would have without a hub, by name: nodes with their checks, and more. Secret."""

    def __init__(self, name: str, args: ManagedClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:cluster_api:ManagedCluster", name, None, opts)
        self._name, self._wanted, self._holds = name, args.wanted, _LOST_FOR_GOOD if args.protect else frozenset[str]()
        kubeconfig = pulumi.Output.secret(args.kubeconfig)
        hub = kubernetes.Provider(
            f"{name}-hub",
            kubeconfig=kubeconfig,
            enable_server_side_apply=True,
            enable_secret_mutable=True,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._hub = pulumi.ResourceOptions(
            parent=self, provider=hub, custom_timeouts=pulumi.CustomTimeouts(delete=_LEAVES)
        )
        space, *rest = objects(args.wanted)
        made = self._apply([space, self._secret(args.secrets), *manifest_secrets(args.wanted), *rest])
        available = Gate(
            f"{name}-available",
            GateArgs(
                spec=ClusterApiAvailable(
                    credentials=_credentials(kubeconfig),
                    namespace=args.wanted.namespace,
                    cluster=args.wanted.name,
                    logs=GateLogs(directory=args.log_directory),
                ),
                timeout_seconds=args.timeout_seconds,
                triggers=[digest(objects(args.wanted))],
            ),
            pulumi.ResourceOptions(parent=self, depends_on=list(made.values())),
        )
        written = f"{args.wanted.namespace}/{args.wanted.name}"
        self._read = pulumi.ResourceOptions(parent=self, provider=hub)
        self.kubeconfig = self._value("kubeconfig", available.passed_at.apply(lambda _: f"{written}-kubeconfig"))
        place = f"{args.wanted.namespace}/{outputs_secret(args.wanted.name)}"
        text = self._value("outputs", available.passed_at.apply(lambda _: place))
        self.outputs = text.apply(lambda found: json.loads(found or "{}"))
        self.register_outputs({"kubeconfig": self.kubeconfig})

    def _value(self, name: str, place: pulumi.Output[str]) -> pulumi.Output[str]:
        """The key `value` of a Secret of the cluster; secret."""
        found = core.Secret.get(f"{self._name}-{name}", place, opts=self._read)
        return pulumi.Output.secret(
            found.data.apply(lambda data: base64.b64decode((data or {}).get("value", "")).decode())
        )

    def _apply(self, found: Sequence[Object]) -> dict[str, pulumi.CustomResource]:
        """Declare all objects; each depends on all objects before it.

        So they are deleted in reverse order: machines first, and last what is needed to give them back. The result is
        keyed by resource name.
        """
        made: dict[str, pulumi.CustomResource] = {}
        for each in found:
            kind, metadata, suffix = each["kind"], each["metadata"], self._suffix(each, made)
            # Manifests are of no use any more once there is a cluster.
            own = pulumi.ResourceOptions(
                depends_on=list(made.values()), protect=kind in self._holds and not suffix.startswith(_MANIFESTS)
            )
            opts = pulumi.ResourceOptions.merge(self._hub, own)
            name = f"{self._name}-{suffix}"
            if kind == "Namespace":
                made[name] = core.Namespace(name, metadata=metadata, opts=opts)
            elif kind == "Secret":
                data = pulumi.Output.secret(each["stringData"])
                made[name] = core.Secret(name, metadata=metadata, string_data=data, opts=opts)
            else:
                made[name] = CustomResource(
                    name, api_version=each["apiVersion"], kind=kind, metadata=metadata, opts=opts, spec=each["spec"]
                )
        return made

    def _suffix(self, item: Object, made: Mapping[str, object]) -> str:
        """The end of an object's Pulumi name: its kind, with its pool; of manifests their number."""
        if "annotations" in item["metadata"] and item["kind"] == "Secret":
            return f"{_MANIFESTS}{sum(_MANIFESTS in name for name in made) + 1}"
        pool = (item.get("spec") or {}).get("template", {}).get("spec", {}).get("pool")
        return f"{item['kind'].lower()}-{pool}" if pool else item["kind"].lower()

    def _secret(self, secrets: Mapping[str, pulumi.Input[str]]) -> Object:
        metadata = {
            "name": self._wanted.secret,
            "namespace": self._wanted.namespace,
            # With this label clusterctl moves it together with the cluster to another hub.
            "labels": {"cluster.x-k8s.io/cluster-name": self._wanted.name, **MOVED},
        }
        data = {path: pulumi.Output.secret(value) for path, value in secrets.items()}
        return {"kind": "Secret", "metadata": metadata, "stringData": data}


def reached(kubeconfig: str) -> tuple[str, str, str, str]:
    """A hub's URL, its certificate authority, and the administrator's certificate and key.

    Raises AssetsError if the kubeconfig does not contain all of them. A rehearsal has no kubeconfig (an empty text) and
    gets values that connect to nothing.
    """
    if not kubeconfig:
        nobody = "-----BEGIN REHEARSAL-----"
        return "https://rehearsal.invalid", nobody, nobody, nobody
    known = credentials(kubeconfig)
    url = str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"].get("server"))
    return url, known.ca_pem, known.client_cert_pem, known.client_key_pem


def _credentials(kubeconfig: pulumi.Output[str]) -> ClusterCredentials:
    url, ca, certificate, key = (kubeconfig.apply(lambda text, part=part: reached(text)[part]) for part in range(4))
    return ClusterCredentials(
        url=pulumi.Output.unsecret(url),
        ca_pem=pulumi.Output.unsecret(ca),
        client_cert_pem=pulumi.Output.unsecret(certificate),
        client_key_pem=key,
    )


def digest(found: Sequence[Object]) -> str:
    """A digest of objects: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]
