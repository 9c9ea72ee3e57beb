"""Custom resources for operators that have settings of their own: LVM Storage, NMState, health checks of nodes.

Field names come from the operators' Go types: openshift/lvm-operator (api/v1alpha1), nmstate/kubernetes-nmstate (api),
medik8s/node-healthcheck-operator and medik8s/fence-agents-remediation (api/v1alpha1). The types were read; the result
was not validated against the operators' CRDs. Nothing here needs Pulumi or a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Manifest = dict[str, Any]
LVM, LVM_NAMESPACE = "lvms-operator", "openshift-storage"
NMSTATE, NMSTATE_NAMESPACE = "kubernetes-nmstate-operator", "openshift-nmstate"
NMSTATE_WEBHOOK = f"/apis/apps/v1/namespaces/{NMSTATE_NAMESPACE}/deployments/nmstate-webhook"
"""The API path of the webhook that validates each NodeNetworkConfigurationPolicy."""
HEALTH, FENCING, AVAILABILITY_NAMESPACE = (
    "node-healthcheck-operator",
    "fence-agents-remediation",
    "openshift-workload-availability",
)
_FENCING_API = "fence-agents-remediation.medik8s.io/v1alpha1"
_TEMPLATE = "bmc"
_HTTPS = 443


@dataclass(frozen=True, kw_only=True)
class NodeBmc:
    """A node's BMC, as the fence agent reaches it."""

    node: str
    """The node's name."""
    address: str
    """Its https URL."""
    system_id: str | None
    """The id of the Redfish System; needed where the BMC serves several."""
    secret: str
    """The Secret that holds the BMC's account."""


def role_label(role: str) -> str:
    """The label that nodes of the role have."""
    return f"node-role.kubernetes.io/{role}"


def lvm_cluster(
    *,
    name: str,
    disks: Sequence[str],
    role: str | None,
    wipe: bool,
    filesystem: str,
    size_percent: int,
    overprovision_ratio: int,
    taints: Iterable[tuple[str, str, str]] = (),
) -> Manifest:
    """The LVMCluster: which disks LVM Storage uses on which nodes.

    `taints` are the taints of these nodes (key, value, effect), which LVM Storage's pods must tolerate.
    """
    selector: Manifest = {"paths": list(disks)}
    selector |= {"forceWipeDevicesAndDestroyAllData": True} if wipe else {}
    device_class: Manifest = {
        "name": name,
        "default": True,
        "fstype": filesystem,
        "deviceSelector": selector,
        "thinPoolConfig": {
            "name": "thin-pool-1",
            "sizePercent": size_percent,
            "overprovisionRatio": overprovision_ratio,
        },
    }
    spec: Manifest = {"storage": {"deviceClasses": [device_class]}}
    if role is not None:
        term = {"matchExpressions": [{"key": role_label(role), "operator": "Exists"}]}
        device_class["nodeSelector"] = {"nodeSelectorTerms": [term]}
    tolerations: list[Manifest] = (
        [{"key": role_label("master"), "operator": "Exists", "effect": "NoSchedule"}] if role != "worker" else []
    )
    for key, value, effect in dict.fromkeys(taints):
        tolerations.append({"key": key, "operator": "Equal", "value": value, "effect": effect})
    spec |= {"tolerations": tolerations} if tolerations else {}
    wait = "jsonpath={.status.state}=Ready"
    return _object("lvm.topolvm.io/v1alpha1", "LVMCluster", "lvmcluster", spec, namespace=LVM_NAMESPACE, wait_for=wait)


def nmstate() -> Manifest:
    """The NMState object, which makes the operator run its handler on all nodes."""
    return _object("nmstate.io/v1", "NMState", "nmstate", {})


def network_policy(name: str, desired: Mapping[str, Any], *, role: str | None, max_unavailable: int) -> Manifest:
    """The desired network state of a role's nodes. The operator rolls a node back when it loses its connection."""
    spec: Manifest = {"desiredState": dict(desired), "maxUnavailable": max_unavailable}
    spec |= {"nodeSelector": {role_label(role): ""}} if role is not None else {}
    return _object("nmstate.io/v1", "NodeNetworkConfigurationPolicy", name, spec, wait_for="condition=Available")


def fencing_template(bmcs: Sequence[NodeBmc], *, verify: bool) -> Manifest:
    """The template for restarting a node over its BMC with fence_redfish(8). Accounts are read from Secrets."""
    at = {bmc.node: urlsplit(bmc.address) for bmc in bmcs}
    by_node = {
        "--ip": {node: str(url.hostname) for node, url in at.items()},
        "--ipport": {node: str(url.port or _HTTPS) for node, url in at.items()},
    }
    systems = {bmc.node: f"/redfish/v1/Systems/{bmc.system_id}" for bmc in bmcs if bmc.system_id}
    by_node |= {"--systems-uri": systems} if systems else {}
    spec = {
        "agent": "fence_redfish",
        "sharedparameters": {"--ssl" if verify else "--ssl-insecure": ""},
        "nodeparameters": by_node,
        "nodeSecretNames": {bmc.node: bmc.secret for bmc in bmcs},
    }
    kind = "FenceAgentsRemediationTemplate"
    return _object(_FENCING_API, kind, _TEMPLATE, {"template": {"spec": spec}}, namespace=AVAILABILITY_NAMESPACE)


def health_check(role: str, *, spared: str, unhealthy_after: int, min_healthy_percent: int) -> Manifest:
    """The NodeHealthCheck for nodes of the role without the label `spared`. The fencing template says how they are
    repaired."""
    template = {
        "apiVersion": _FENCING_API,
        "kind": "FenceAgentsRemediationTemplate",
        "namespace": AVAILABILITY_NAMESPACE,
        "name": _TEMPLATE,
    }
    spec = {
        "selector": {
            "matchExpressions": [
                {"key": role_label(role), "operator": "Exists"},
                {"key": spared, "operator": "DoesNotExist"},
            ]
        },
        "minHealthy": f"{min_healthy_percent}%",
        "unhealthyConditions": [
            {"type": "Ready", "status": status, "duration": f"{unhealthy_after}s"} for status in ("False", "Unknown")
        ],
        "remediationTemplate": template,
    }
    wait = "jsonpath={.status.phase}=Enabled"
    return _object("remediation.medik8s.io/v1alpha1", "NodeHealthCheck", f"{role}-bmc", spec, wait_for=wait)


def _object(
    api_version: str,
    kind: str,
    name: str,
    spec: Manifest,
    *,
    namespace: str | None = None,
    wait_for: str | None = None,
) -> Manifest:
    metadata: Manifest = {"name": name}
    metadata |= {"namespace": namespace} if namespace is not None else {}
    metadata |= {"annotations": {"pulumi.com/waitFor": wait_for}} if wait_for is not None else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
