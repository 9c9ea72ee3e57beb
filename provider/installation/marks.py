"""What people set on a node: its labels, annotations and taints, except those that software maintains itself.

When a Node object is deleted and created again, the former are lost. The latter come back on their own and must not be
restored: an old k8s.ovn.org/node-chassis-id would keep the node out of its network. So the lists below say which keys
belong to software. A pattern that ends in `/` matches all keys with this prefix. Not in the lists, because people set
them on bare metal: topology.kubernetes.io/*, node.kubernetes.io/exclude-from-external-load-balancers,
node-role.kubernetes.io/infra and other roles, and the label k8s.ovn.org/egress-assignable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WORKER_ROLE = "node-role.kubernetes.io/worker"
_ROLES = (
    # The kubelet's --node-labels (machine-config-operator templates/*/01-*-kubelet/_base/units/kubelet.service.yaml).
    # machine-config-operator adds and removes `worker` on control plane machines (pkg/controller/node).
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/arbiter",
    WORKER_ROLE,
)
_LABELS = (
    *_ROLES,
    "node.openshift.io/os_id",  # the kubelet's --node-labels, as above
    # The kubelet (kubernetes pkg/kubelet/kubelet_node_status.go initialNode, updateDefaultLabels), and cloud providers.
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "machineconfiguration.openshift.io/",  # machine-config-operator
    "egress-service.k8s.ovn.org/",  # ovn-kubernetes pkg/clustermanager/egressservice
    "feature.node.kubernetes.io/",  # node-feature-discovery
    "kubevirt.io/",  # virt-handler's heartbeat
)
_ANNOTATIONS = (
    "metal-ipi/",  # our own
    "k8s.ovn.org/",  # ovn-kubernetes pkg/util/node_annotations.go
    "machineconfiguration.openshift.io/",  # machine-config-operator pkg/daemon/constants
    "machine.openshift.io/",  # machine-api-operator, nodelink
    "cloud.network.openshift.io/",  # cloud-network-config-controller
    "volumes.kubernetes.io/",  # the kubelet: controller-managed-attach-detach
    "csi.volume.kubernetes.io/",  # the kubelet (kubernetes pkg/volume/csi/nodeinfomanager)
    "node.alpha.kubernetes.io/",  # kube-controller-manager, ttl
    "alpha.kubernetes.io/",  # the kubelet: provided-node-ip
    "nfd.node.kubernetes.io/",  # node-feature-discovery
    "kubevirt.io/",  # virt-handler's heartbeat
    "tuned.openshift.io/",  # cluster-node-tuning-operator
    "sriovnetwork.openshift.io/",  # sriov-network-operator: how far it has drained the node
    "metal.equinix.com/",  # cloud-provider-equinix-metal: the node's BGP peers
)
_TAINTS = (
    # The node lifecycle controller, and the kubelet when it registers (k8s.io/api/core/v1/well_known_taints.go). People
    # set `out-of-service` on a node that is down for good; it must not be restored on a node that is back.
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",  # cloud providers
    "UpdateInProgress",  # machine-config-operator pkg/daemon/constants NodeUpdateInProgressTaint
    *_ROLES,  # the kubelet's --register-with-taints, and machine-config-operator
    "k8s.ovn.org/",  # ovn-kubernetes: network-unavailable
)


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What people set on one node."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]
    """`key`, `effect`, and `value` if it has one."""
    unschedulable: bool
    """Whether somebody else cordoned it."""
    no_worker: bool
    """Whether somebody removed the worker role, which the kubelet gives to each new worker node."""


def marks_of(node: Mapping[str, Any], *, cordoned_here: bool) -> Marks:
    """What people set on a Node object."""
    metadata: Mapping[str, Any] = node.get("metadata") or {}
    spec: Mapping[str, Any] = node.get("spec") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    return Marks(
        labels=_of_others(labels, _LABELS),
        annotations=_of_others(metadata.get("annotations") or {}, _ANNOTATIONS),
        taints=[
            {key: str(taint[key]) for key in ("key", "value", "effect") if taint.get(key)}
            for taint in spec.get("taints") or []
            if not _is_of(_TAINTS, str(taint.get("key")))
        ],
        unschedulable=bool(spec.get("unschedulable")) and not cordoned_here,
        no_worker=bool(labels) and WORKER_ROLE not in labels,
    )


def missing(marks: Marks, node: Mapping[str, Any], *, worker: bool) -> dict[str, Any] | None:
    """A merge patch that restores what a Node object lacks, and changes nothing else; None if nothing is missing.

    `worker`: it is a worker. On other nodes the machine config operator maintains the worker role.
    """
    metadata: Mapping[str, Any] = node.get("metadata") or {}
    spec: Mapping[str, Any] = node.get("spec") or {}
    has: Mapping[str, str] = metadata.get("labels") or {}
    labels: dict[str, str | None] = {key: value for key, value in marks.labels.items() if key not in has}
    if worker and marks.no_worker and WORKER_ROLE in has:
        labels[WORKER_ROLE] = None
    has = metadata.get("annotations") or {}
    annotations = {key: value for key, value in marks.annotations.items() if key not in has}
    present: Sequence[Mapping[str, Any]] = spec.get("taints") or []
    known = {(taint.get("key"), taint.get("effect")) for taint in present}
    taints = [taint for taint in marks.taints if (taint.get("key"), taint.get("effect")) not in known]
    patch: dict[str, Any] = {}
    if labels or annotations:
        parts = (("labels", labels), ("annotations", annotations))
        patch["metadata"] = {key: part for key, part in parts if part}
    if taints:
        patch.setdefault("spec", {})["taints"] = [*present, *taints]
    if marks.unschedulable and not spec.get("unschedulable"):
        patch.setdefault("spec", {})["unschedulable"] = True
    return patch or None


def _of_others(values: Mapping[str, str], owned: Sequence[str]) -> dict[str, str]:
    """Without the keys that software maintains."""
    return {key: value for key, value in values.items() if not _is_of(owned, key)}


def _is_of(owned: Sequence[str], key: str) -> bool:
    return any(key.startswith(pattern) if pattern.endswith("/") else key == pattern for pattern in owned)
