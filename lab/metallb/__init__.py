"""The real MetalLB, built from its Go module, and what its pods need on the lab's nodes.

Its controller and speakers run as the manifest of its own release says, with these differences: the controller has the
node's network, because pods have no other here, and so a port that no speaker has; its webhook, whose Service the API
servers could not reach, is switched off; speakers run on workers only. A node has no network plug-in of OpenShift's, so
the real kube-proxy takes what arrives for a Service to its endpoints.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from binaries.cache import Report
from binaries.go_tool import GoTool
from lab.kubernetes import build, crds

_HERE = Path(__file__).parent
_PROXY = "kube-proxy"
_PORT = 7473
_MEMORY = {"name": "GOMEMLIMIT", "value": "96MiB"}
"""Of each program: the lab's nodes have programs in Go collect no garbage before (lab/openshift/node/container.go)."""
_WORKERS = {"node-role.kubernetes.io/worker": ""}

PROGRAMS = tuple(
    GoTool(program=name, package=f"{crds.METALLB.module}/{name}", pins=_HERE, minutes="about 1.5 minutes")
    for name in ("controller", "speaker")
)
MANIFEST = replace(crds.METALLB, name="metallb-manifest", folder="config/manifests", files=("metallb-native.yaml",))
"""What one applies to have MetalLB without an operator."""

_KINDS = {
    "ServiceAccount": "/api/v1",
    "ConfigMap": "/api/v1",
    "Role": "/apis/rbac.authorization.k8s.io/v1",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1",
    "Deployment": "/apis/apps/v1",
    "DaemonSet": "/apis/apps/v1",
}
"""The kinds of the manifest that are applied: its definitions are there before, and nothing calls its webhook."""


def cached() -> Path | None:
    """The directory with the manifest; None where the programs or it are not there."""
    return MANIFEST.cached() if len(images()) == len(PROGRAMS) + 1 else None


def ensure(report: Report) -> Path:
    """The same, built and fetched if need be. Raises SetupFailed or ProgramMissing."""
    for tool in PROGRAMS:
        tool.ensure(report)
    build.ensure(report, _PROXY)
    return MANIFEST.ensure()


def images() -> dict[str, Path]:
    """The program of each image that nodes pull, as far as they are built."""
    programs = {f"quay.io/metallb/{tool.program}:{crds.METALLB.version}": tool.cached() for tool in PROGRAMS}
    found = {**programs, _proxy_image(): build.cached(_PROXY)}
    return {image: program for image, program in found.items() if program is not None}


def objects(manifest: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is applied to a cluster, with its paths, in order."""
    for path in sorted(manifest.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] in _KINDS:
                yield _path(document), _fitted(document)
    for document in _proxy():
        yield _path(document), document


def _path(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{_KINDS[document['kind']]}{space}/{document['kind'].lower()}s/{metadata['name']}"


def _fitted(document: dict[str, Any]) -> dict[str, Any]:
    """An object of the manifest as the lab's nodes can run it."""
    spec = document.get("spec", {}).get("template", {}).get("spec", {})
    for container in spec.get("containers", ()):
        container["env"].append(_MEMORY)
        if document["kind"] == "DaemonSet":
            spec["nodeSelector"] = _WORKERS
        else:
            spec["hostNetwork"] = True
            container["args"] += [f"--port={_PORT}", "--webhook-mode=disabled"]
            for of_the_webhook in (container["ports"], container["volumeMounts"], spec["volumes"]):
                of_the_webhook.clear()
            container["ports"] = [{"containerPort": _PORT, "name": "monitoring"}]
    return document


def _proxy_image() -> str:
    return f"registry.k8s.io/{_PROXY}:v{build.pinned()}"


def _proxy() -> list[dict[str, Any]]:
    """kube-proxy on the nodes that take what is sent to Services; the program nft is the node's own."""
    metadata = {"name": _PROXY, "namespace": "kube-system"}
    directories = ["/usr/sbin", "/usr/lib", "/lib", *(["/lib64"] if platform.machine() == "x86_64" else [])]
    container = {
        "name": _PROXY,
        "image": _proxy_image(),
        "command": [_PROXY],
        "args": [
            *("--proxy-mode=nftables", "--hostname-override=$(NODE)", "--healthz-bind-address=127.0.0.1:10256"),
            # The limits of connections are the whole system's.
            *("--conntrack-max-per-core=0", "--conntrack-min=0"),
        ],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, _MEMORY],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": path[1:].replace("/", "-"), "mountPath": path} for path in directories],
    }
    pod = {
        "serviceAccountName": _PROXY,
        "hostNetwork": True,
        "nodeSelector": _WORKERS,
        "containers": [container],
        "volumes": [{"name": path[1:].replace("/", "-"), "hostPath": {"path": path}} for path in directories],
    }
    labels = {"k8s-app": _PROXY}
    rights = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"lab:{_PROXY}"},
            **rights,
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]
