"""The objects that every hub has: DNS for Services, storage, a load balancer. Pure functions.

They are laid out as others do it: DNS as kubeadm does, storage and load balancer as in their own manifests. The one
CoreDNS does not wait before it ends: no other one is there to take over.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

from lab.hub import images
from lab.hub.credentials import NODE
from lab.network import plan

Object = dict[str, Any]

DNS_SERVICE = str(ipaddress.ip_network(plan.HUB_SERVICES)[10])
"""The address of the Service `kube-dns`."""
DNS_DOMAIN = "cluster.local"
STORAGE_CLASS = "local-path"
UPLINK = "eth0"
"""The hub's cable to the facility."""

_SYSTEM = "kube-system"
_STORAGE = "local-path-storage"
_CRITICAL = "system-cluster-critical"
_RBAC = "rbac.authorization.k8s.io"
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ClusterRole": f"/apis/{_RBAC}/v1/clusterroles",
    "ClusterRoleBinding": f"/apis/{_RBAC}/v1/clusterrolebindings",
    "Role": f"/apis/{_RBAC}/v1/namespaces/{{}}/roles",
    "RoleBinding": f"/apis/{_RBAC}/v1/namespaces/{{}}/rolebindings",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "Certificate": "/apis/cert-manager.io/v1/namespaces/{}/certificates",
    "Issuer": "/apis/cert-manager.io/v1/namespaces/{}/issuers",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}

_COREFILE = f"""\
.:53 {{
    errors
    health
    ready
    kubernetes {DNS_DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30 {{
        disable success {DNS_DOMAIN}
        disable denial {DNS_DOMAIN}
    }}
    loop
    reload
    loadbalance
}}
"""


def path(document: Object) -> str:
    """The path of an object in the API."""
    metadata = document["metadata"]
    return f"{_PATHS[document['kind']].format(metadata.get('namespace'))}/{metadata['name']}"


def all_of(volumes: Path) -> list[Object]:
    """Everything, in the order in which it is applied; `volumes` is the directory that has the volumes."""
    return [*dns(), *storage(volumes), *balancer()]


def dns() -> list[Object]:
    """CoreDNS behind the Service `kube-dns`."""
    name, labels = "coredns", {"k8s-app": "kube-dns"}
    reads = [_rule("", ("endpoints", "services", "pods", "namespaces"), ("list", "watch"))]
    reads.append(_rule("discovery.k8s.io", ("endpointslices",), ("list", "watch")))
    container = {
        "name": name,
        "image": images.COREDNS.reference,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1, "failureThreshold": 3},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "timeoutSeconds": 5, "failureThreshold": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "70Mi"}, "limits": {"memory": "170Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "priorityClassName": _CRITICAL,
        "serviceAccountName": name,
        "dnsPolicy": "Default",  # the facility's: what it forwards to
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    service = {
        "selector": labels,
        "clusterIP": DNS_SERVICE,
        "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            {"name": "metrics", "port": 9153, "protocol": "TCP"},
        ],
    }
    return [
        _object("v1", "ServiceAccount", name, _SYSTEM),
        _object(f"{_RBAC}/v1", "ClusterRole", f"system:{name}", rules=reads),
        _binding("ClusterRole", f"system:{name}", name, _SYSTEM),
        _object("v1", "ConfigMap", name, _SYSTEM, data={"Corefile": _COREFILE}),
        _deployment(name, _SYSTEM, labels, pod),
        _object("v1", "Service", "kube-dns", _SYSTEM, spec=service),
    ]


def storage(volumes: Path) -> list[Object]:
    """local-path-provisioner, and the storage class that is used where a claim names none."""
    name, labels = "local-path-provisioner", {"app": "local-path-provisioner"}
    every = ("get", "list", "watch", "create", "patch", "update", "delete")
    reads = ("get", "list", "watch")
    rules = [
        _rule("", ("nodes", "persistentvolumeclaims", "configmaps", "pods", "pods/log"), reads),
        _rule("", ("persistentvolumes",), every),
        _rule("", ("events",), ("create", "patch")),
        _rule("storage.k8s.io", ("storageclasses",), reads),
    ]
    helper = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "helper-pod", "image": images.LOCAL_PATH.reference}],
        },
    }
    config = {
        "config.json": json.dumps(
            {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(volumes)]}]}
        ),
        "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
        "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
        "helperPod.yaml": json.dumps(helper),
    }
    container = {
        "name": name,
        "image": images.LOCAL_PATH.reference,
        "command": [
            "local-path-provisioner",
            "start",
            "--config=/etc/config/config.json",
            f"--service-account-name={name}",
        ],
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "CONFIG_MOUNT_PATH", "value": "/etc/config/"},
        ],
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/config/"}],
    }
    pod = {
        "serviceAccountName": name,
        "containers": [container],
        "volumes": [{"name": "config-volume", "configMap": {"name": "local-path-config"}}],
    }
    annotations = {
        "storageclass.kubernetes.io/is-default-class": "true",
        "defaultVolumeType": "local",  # unlike `hostPath`, volumes of this type are made writable for a pod's fsGroup
    }
    classed = _object("storage.k8s.io/v1", "StorageClass", STORAGE_CLASS, provisioner="rancher.io/local-path")
    classed |= {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    classed["metadata"]["annotations"] = annotations
    return [
        _object("v1", "Namespace", _STORAGE),
        _object("v1", "ServiceAccount", name, _STORAGE),
        _object(f"{_RBAC}/v1", "Role", name, _STORAGE, rules=[_rule("", ("pods",), every)]),
        _binding("Role", name, name, _STORAGE),
        _object(f"{_RBAC}/v1", "ClusterRole", name, rules=rules),
        _binding("ClusterRole", name, name, _STORAGE),
        _object("v1", "ConfigMap", "local-path-config", _STORAGE, data=config),
        _deployment(name, _STORAGE, labels, pod),
        classed,
    ]


def balancer() -> list[Object]:
    """kube-vip, which announces the address that a Service of type LoadBalancer asks for (`spec.loadBalancerIP`)."""
    name, labels = "kube-vip", {"app": "kube-vip"}
    reads = ("get", "list", "watch")
    rules = [
        _rule("", ("services/status",), ("update",)),
        _rule("", ("services", "endpoints"), (*reads, "update")),
        _rule("", ("nodes",), reads),
        _rule("discovery.k8s.io", ("endpointslices",), reads),
        _rule("coordination.k8s.io", ("leases",), (*reads, "update", "create")),
    ]
    settings = {
        "svc_enable": "true",
        "vip_arp": "true",
        "vip_interface": UPLINK,
        "vip_subnet": "32",
        "cp_namespace": _SYSTEM,
        "vip_nodename": NODE,
        "prometheus_server": "127.0.0.1:2112",  # not for the facility
    }
    container = {
        "name": name,
        "image": images.KUBE_VIP.reference,
        "args": ["manager"],
        "env": [{"name": key, "value": value} for key, value in settings.items()],
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    pod = {"priorityClassName": _CRITICAL, "serviceAccountName": name, "hostNetwork": True, "containers": [container]}
    return [
        _object("v1", "ServiceAccount", name, _SYSTEM),
        _object(f"{_RBAC}/v1", "ClusterRole", name, rules=rules),
        _binding("ClusterRole", name, name, _SYSTEM),
        _deployment(name, _SYSTEM, labels, pod),
    ]


def _object(version: str, kind: str, name: str, namespace: str | None = None, **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace is not None else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _deployment(name: str, namespace: str, labels: dict[str, str], pod: Object) -> Object:
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _object("apps/v1", "Deployment", name, namespace, spec=spec)


def _rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _binding(kind: str, role: str, account: str, namespace: str) -> Object:
    """Gives a service account a role, in its namespace or everywhere."""
    return _object(
        f"{_RBAC}/v1",
        f"{kind}Binding",
        role,
        namespace if kind == "Role" else None,
        roleRef={"apiGroup": _RBAC, "kind": kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    )
