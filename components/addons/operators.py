"""Operators of the Operator Lifecycle Manager (OLM), and their custom resources.

An operator is a Subscription in a namespace of its own with an OperatorGroup. OLM creates an InstallPlan from the
Subscription, and from the InstallPlan a ClusterServiceVersion, which succeeds when the operator runs. A gate waits for
that and reports what blocks it. The operator's custom resources are applied one by one after the gate, because the API
does not know their kinds earlier.

When an operator is removed, its custom resources are deleted first, while the operator still runs and can clean up.
Then the namespace is deleted with everything in it. The CustomResourceDefinitions stay: OLM leaves them, because other
objects may be of these kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import CoreObject, api_provider
from metal_ipi.provider.types import ClusterCredentials, Gate, GateArgs, ObjectReady, OperatorInstalled, Secret

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SecretArgs:
    """A Secret in the operator's namespace."""

    name: str
    data: Mapping[str, pulumi.Input[str]]
    """Key → text. The texts are secret."""


@dataclass(frozen=True, kw_only=True)
class OperatorArgs:
    """One operator."""

    package: str
    namespace: str
    catalog: str
    catalog_namespace: str = "openshift-marketplace"
    channel: str | None = None
    """None: the package's default channel."""
    starting_csv: str | None = None
    """The version to install first. None: the newest of the channel."""
    privileged: bool = False
    """Whether pods of the namespace may use the host's network and files."""
    manual: bool = False
    """Whether a person approves each InstallPlan."""
    everywhere: bool = False
    """Whether the operator watches all namespaces; if not, only its own. Operators in one namespace must agree on
    this."""
    secrets: tuple[SecretArgs, ...] = ()
    """Secrets that the custom resources refer to."""
    objects: tuple[Manifest, ...] = ()
    """The operator's custom resources, in order; the annotation `pulumi.com/waitFor` says what to wait for after
    each."""
    follows: str | None = None
    """The package whose custom resources must be applied before this operator's."""
    settled: Mapping[str, str] = field(default_factory=dict[str, str])
    """What must be ready after the first custom resource and before the second: API path of an object → its
    condition."""


@dataclass(frozen=True, kw_only=True)
class OperatorsArgs:
    """The operators of one cluster."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig; secret."""
    credentials: ClusterCredentials
    """Credentials of the same cluster, in the form that gates take."""
    operators: tuple[OperatorArgs, ...]
    timeout: int
    """Seconds to wait until an operator is installed, and again until each custom resource is ready."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete before the cluster's API is used."""
    cluster: pulumi.Resource | None = None
    """A resource that lives as long as the cluster. When it is deleted, the objects are dropped from the state without
    calls to the API."""


class Operators(pulumi.ComponentResource):
    """All operators of one cluster; independent operators are installed in parallel, by server-side apply."""

    done: tuple[pulumi.Resource, ...]
    """The last resource of each operator."""

    def __init__(self, name: str, args: OperatorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:addons:Operators", name, None, opts)
        provider = api_provider(f"{name}-provider", args.kubeconfig, self)
        self._name, self._args = name, args
        wait = f"{args.timeout}s"
        self._child = pulumi.ResourceOptions(
            parent=self,
            provider=provider,
            deleted_with=args.cluster,
            custom_timeouts=pulumi.CustomTimeouts(create=wait, update=wait),
        )
        groups: dict[str, pulumi.Resource] = {}
        for each in args.operators:
            if each.namespace not in groups:
                beside = [other for other in args.operators if other.namespace == each.namespace]
                groups[each.namespace] = self._group(each, privileged=any(other.privileged for other in beside))
        self._last: dict[str, pulumi.Resource] = {}
        for each in args.operators:
            self._last[each.package] = self._operator(each, groups[each.namespace])
        self.done = tuple(self._last.values())
        self.register_outputs({"operators": [each.package for each in args.operators]})

    def _group(self, args: OperatorArgs, *, privileged: bool) -> pulumi.Resource:
        """The namespace and its OperatorGroup, which says which namespaces the operators watch."""
        namespace = CoreObject(
            "Namespace",
            f"{self._name}-{args.namespace}-namespace",
            self._after(*self._args.after),
            metadata={"name": args.namespace, "labels": namespace_labels(args.namespace, privileged=privileged)},
        )
        group = operator_group(args.namespace, everywhere=args.everywhere)
        return self._custom(f"{args.namespace}-operator-group", group, namespace)

    def _operator(self, args: OperatorArgs, group: pulumi.Resource) -> pulumi.Resource:
        """The Subscription, its gate and the custom resources; returns the last of these resources."""
        wanted = subscription(args)
        subscribed = self._custom(f"{args.package}-subscription", wanted, group)
        spec = OperatorInstalled(
            credentials=self._args.credentials,
            namespace=args.namespace,
            subscription=args.package,
            manual=args.manual,
        )
        last: pulumi.Resource = self._gate(args.package, spec, wanted, subscribed)
        secrets = [
            CoreObject(
                "Secret",
                f"{self._name}-{args.package}-{each.name}",
                self._after(group),
                metadata={"name": each.name, "namespace": args.namespace},
                stringData=pulumi.Output.secret(each.data),
            )
            for each in args.secrets
        ]
        for number, manifest in enumerate(args.objects):
            metadata = manifest["metadata"]
            place = f"{metadata['namespace']}." if "namespace" in metadata else ""  # a namespace's name has no dot
            title = f"{args.package}-{manifest['kind'].lower()}-{place}{metadata['name']}"
            before = [self._last[args.follows]] if args.follows else []
            last = self._custom(title, manifest, last, *secrets, *before)
            for path, condition in args.settled.items() if number == 0 else ():
                ready = ObjectReady(credentials=self._args.credentials, path=path, conditions=[condition])
                last = self._gate(f"{args.package}-{path.rpartition('/')[2]}", ready, manifest, last)
        return last

    def _gate(
        self, title: str, spec: OperatorInstalled | ObjectReady, trigger: Manifest, after: pulumi.Resource
    ) -> Gate:
        return Gate(
            f"{self._name}-{title}",
            GateArgs(spec=spec, timeout_seconds=self._args.timeout, triggers=[trigger["spec"]]),
            pulumi.ResourceOptions(parent=self, depends_on=[after]),
        )

    def _custom(self, title: str, manifest: Manifest, *after: pulumi.Resource) -> pulumi.CustomResource:
        return kubernetes.apiextensions.CustomResource(
            f"{self._name}-{title}",
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            metadata=manifest["metadata"],
            spec=manifest.get("spec", {}),
            opts=self._after(*after),
        )

    def _after(self, *others: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=list(others)))


def namespace_labels(namespace: str, *, privileged: bool) -> dict[str, str]:
    """Labels of an operator's namespace.

    Without the privileged label, Pod Security admission refuses pods that use the host's network and files. OpenShift's
    monitoring scrapes namespaces named openshift-* that have the label cluster-monitoring.
    """
    labels = {"openshift.io/cluster-monitoring": "true"} if namespace.startswith("openshift-") else {}
    if privileged:
        labels |= {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return labels


def operator_group(namespace: str, *, everywhere: bool) -> Manifest:
    """The OperatorGroup of a namespace: which namespaces its operators watch."""
    spec: Manifest = {} if everywhere else {"targetNamespaces": [namespace]}
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": namespace, "namespace": namespace},
        "spec": spec,
    }


def subscription(args: OperatorArgs) -> Manifest:
    """The Subscription that asks OLM to install the operator."""
    spec: Manifest = {
        "name": args.package,
        "source": args.catalog,
        "sourceNamespace": args.catalog_namespace,
        "installPlanApproval": "Manual" if args.manual else "Automatic",
    }
    spec |= {"channel": args.channel} if args.channel else {}
    spec |= {"startingCSV": args.starting_csv} if args.starting_csv else {}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": args.package, "namespace": args.namespace},
        "spec": spec,
    }
