"""The objects of a cluster, as a user writes them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from tests.cluster_api.hub import Hub
from tests.stacks.rack import SECRET, rack

CLUSTERS, MACHINES = "clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"
DEPLOYMENTS = "machinedeployments.cluster.x-k8s.io"
FACILITIES, SERVERS = (
    "metalipiclusters.infrastructure.cluster.x-k8s.io",
    "metalipimachines.infrastructure.cluster.x-k8s.io",
)
TEMPLATES = "metalipimachinetemplates.infrastructure.cluster.x-k8s.io"
HEALTH_CHECKS = "machinehealthchecks.cluster.x-k8s.io"
REMEDIATIONS, REMEDIATION_TEMPLATES = (
    "metalipiremediations.infrastructure.cluster.x-k8s.io",
    "metalipiremediationtemplates.infrastructure.cluster.x-k8s.io",
)
CONFIGS = "openshiftconfigs.bootstrap.cluster.x-k8s.io"
CONFIG_TEMPLATES = "openshiftconfigtemplates.bootstrap.cluster.x-k8s.io"
CONTROL_PLANES = "openshiftcontrolplanes.controlplane.cluster.x-k8s.io"
_CLUSTER = "cluster.x-k8s.io/cluster-name"


def settings(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A rack's settings without secrets, and the secrets. Nobody is where its BMCs are."""
    tree: dict[str, Any] = {**rack(), "clusterName": name}
    servers = [
        {**server, "bmc": {**server["bmc"], "address": f"https://127.0.0.{10 + number}:9"}}
        for number, server in enumerate(tree["platform"]["servers"])
    ]
    tree["platform"] = {**tree["platform"], "servers": servers, "bmc": {"username": "ipi"}}
    tree["install"] = {}
    tree["artifacts"] = {key: value for key, value in tree["artifacts"].items() if key != "secretAccessKey"}
    return tree, {
        "platform.bmc.password": SECRET,
        "install.pullSecret": rack()["install"]["pullSecret"],
        "artifacts.secretAccessKey": "canary",
    }


def reference(group: str, kind: str, name: str) -> dict[str, str]:
    """As v1beta2 has it."""
    return {"apiGroup": f"{group}.cluster.x-k8s.io", "kind": kind, "name": name}


def _object(group: str, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    version = "cluster.x-k8s.io/v1beta2" if not group else f"{group}.cluster.x-k8s.io/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": dict(spec)}


def facility(
    hub: Hub, settings: Mapping[str, Any], secrets: Mapping[str, str], namespace: str = "facility", **metadata: Any
) -> None:
    """A Cluster, its MetalIpiCluster, which has `metadata` too, and the Secret of its settings."""
    name = str(settings["clusterName"])
    data = {key: base64.b64encode(value.encode()).decode() for key, value in secrets.items()}
    hub.make("secrets", {"metadata": {"name": f"{name}-settings"}, "data": data}, namespace)
    spec = {"settings": settings, "secretsRef": {"name": f"{name}-settings"}}
    made = _object("infrastructure", "MetalIpiCluster", name, spec, labels={_CLUSTER: name}, **metadata)
    hub.make(FACILITIES, made, namespace)
    hub.make(
        CLUSTERS,
        _object(
            "",
            "Cluster",
            name,
            {
                "infrastructureRef": reference("infrastructure", "MetalIpiCluster", name),
                "controlPlaneRef": reference("controlplane", "OpenShiftControlPlane", name),
            },
        ),
        namespace,
    )


def create(hub: Hub, settings: Mapping[str, Any], secrets: Mapping[str, str], *, workers: int) -> None:
    """A whole cluster: control plane of all listed servers, workers of a MachineDeployment."""
    name, version = str(settings["clusterName"]), f"v{settings['openshiftVersion']}"
    facility(hub, settings, secrets)
    hub.make(TEMPLATES, _object("infrastructure", "MetalIpiMachineTemplate", name, {"template": {"spec": {}}}))
    hub.make(CONFIG_TEMPLATES, _object("bootstrap", "OpenShiftConfigTemplate", name, {"template": {"spec": {}}}))
    machines = {"spec": {"infrastructureRef": reference("infrastructure", "MetalIpiMachineTemplate", name)}}
    count = sum(server["name"].startswith("control-plane-") for server in settings["platform"]["servers"])
    control_plane = {"replicas": count, "version": version, "machineTemplate": machines}
    hub.make(CONTROL_PLANES, _object("controlplane", "OpenShiftControlPlane", name, control_plane))
    labels = {_CLUSTER: name, "cluster.x-k8s.io/deployment-name": f"{name}-workers"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "clusterName": name,
            "version": version,
            "bootstrap": {"configRef": reference("bootstrap", "OpenShiftConfigTemplate", name)},
            "infrastructureRef": reference("infrastructure", "MetalIpiMachineTemplate", name),
        },
    }
    spec: dict[str, Any] = {
        "clusterName": name,
        "replicas": workers,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    spec["rollout"] = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
    # A worker may lend its server to the bootstrap machine: it is there before the control plane is.
    early = {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}
    made = _object("", "MachineDeployment", f"{name}-workers", spec, labels={_CLUSTER: name}, annotations=early)
    hub.make(DEPLOYMENTS, made)


def health_check(hub: Hub, name: str, of: str, labels: Mapping[str, str], **remediation: Any) -> None:
    """Machines with these labels are looked after: a node that is not Ready for two seconds is not healthy."""
    conditions = [{"type": "Ready", "status": status, "timeoutSeconds": 2} for status in ("False", "Unknown")]
    spec = {
        "clusterName": of,
        "selector": {"matchLabels": dict(labels)},
        "checks": {"nodeStartupTimeoutSeconds": 0, "unhealthyNodeConditions": conditions},
        **({"remediation": remediation} if remediation else {}),
    }
    hub.make(HEALTH_CHECKS, _object("", "MachineHealthCheck", name, spec, labels={_CLUSTER: of}))


def remediation_template(hub: Hub, name: str, **spec: Any) -> Mapping[str, Any]:
    """A MetalIpiRemediationTemplate; answers what a MachineHealthCheck refers to it by."""
    document = _object("infrastructure", "MetalIpiRemediationTemplate", name, {"template": {"spec": spec}})
    hub.make(REMEDIATION_TEMPLATES, document)
    return {"apiVersion": document["apiVersion"], "kind": document["kind"], "name": name}
