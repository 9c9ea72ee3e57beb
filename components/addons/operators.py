"""Operators of the Operator Lifecycle Manager (OLM), and the objects that they are given.

An operator is a Subscription in a namespace of its own with an OperatorGroup. OLM makes an InstallPlan of it, and of
that a ClusterServiceVersion, which succeeds when the operator runs. A gate waits for that, and tells what stands in the
way. The operator's objects come after it, one after the other: before, the API does not know their kinds.

To remove an operator its objects go first, while it is still there to clean up after them, then the namespace with
everything of the operator in it. Its CustomResourceDefinitions stay: OLM leaves them, because objects of others may be
of these kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import api_provider
from metal_ipi.provider.types import ClusterCredentials, Gate, GateArgs, ObjectReady, OperatorInstalled, Secret

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SecretArgs:
    """A Secret in the operator's namespace."""

    name: str
    data: Mapping[str, pulumi.Input[str]]
    """Key → text; secret."""


@dataclass(frozen=True, kw_only=True)
class OperatorArgs:
    """One operator."""

    package: str
    namespace: str
    catalog: str
    catalog_namespace: str = "openshift-marketplace"
    channel: str | None = None
    """None: the package's default."""
    starting_csv: str | None = None
    """None: the channel's latest."""
    privileged: bool = False
    """Whether pods of the namespace may use the host's network and files."""
    manual: bool = False
    """Whether somebody approves each InstallPlan."""
    everywhere: bool = False
    """Whether it looks for objects in all namespaces; else in its own. Of a namespace all have the same."""
    secrets: tuple[SecretArgs, ...] = ()
    """What its objects name."""
    objects: tuple[Manifest, ...] = ()
    """Its objects, in order; `pulumi.com/waitFor` says what each is waited for."""
    follows: str | None = None
    """The package whose objects come before this one's."""
    settled: Mapping[str, str] = field(default_factory=dict[str, str])
    """What must be ready behind the first object before the second: path of an object of the API → condition."""


@dataclass(frozen=True, kw_only=True)
class OperatorsArgs:
    """What is installed on a cluster."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig, secret."""
    credentials: ClusterCredentials
    """The same, as gates take it."""
    operators: tuple[OperatorArgs, ...]
    timeout: int
    """Seconds until an operator is installed; the same until an object is ready."""
    after: Sequence[pulumi.Resource] = ()
    """What must be done before the cluster is asked for anything."""
    cluster: pulumi.Resource | None = None
    """What lasts as long as the cluster: the objects go with it, without anybody being asked to delete them."""


class Operators(pulumi.ComponentResource):
    """All operators of one cluster, beside each other; by server-side apply."""

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
        """The namespace, and what says where operators in it look for objects."""
        namespace = kubernetes.core.v1.Namespace(
            f"{self._name}-{args.namespace}-namespace",
            metadata={"name": args.namespace, "labels": namespace_labels(args.namespace, privileged=privileged)},
            opts=self._after(*self._args.after),
        )
        group = operator_group(args.namespace, everywhere=args.everywhere)
        return self._custom(f"{args.namespace}-operator-group", group, namespace)

    def _operator(self, args: OperatorArgs, group: pulumi.Resource) -> pulumi.Resource:
        """The operator and its objects; the last resource of them."""
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
            kubernetes.core.v1.Secret(
                f"{self._name}-{args.package}-{each.name}",
                metadata={"name": each.name, "namespace": args.namespace},
                string_data=pulumi.Output.secret(each.data),
                opts=self._after(group),
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
    """Restricted namespaces refuse pods that use the host's network and files. OpenShift's monitoring looks at
    namespaces of its own prefix that say so."""
    labels = {"openshift.io/cluster-monitoring": "true"} if namespace.startswith("openshift-") else {}
    if privileged:
        labels |= {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return labels


def operator_group(namespace: str, *, everywhere: bool) -> Manifest:
    """Where operators in a namespace look for their objects."""
    spec: Manifest = {} if everywhere else {"targetNamespaces": [namespace]}
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": namespace, "namespace": namespace},
        "spec": spec,
    }


def subscription(args: OperatorArgs) -> Manifest:
    """What OLM is asked for."""
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
