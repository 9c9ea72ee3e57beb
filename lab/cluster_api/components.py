"""The folder that clusterctl installs from: the core provider of the pinned Go module, and cert-manager beside it.

<folder>/cluster-api/<version>/core-components.yaml, metadata.yaml
<folder>/cert-manager/<version>/cert-manager.yaml
<folder>/clusterctl.yaml     where these are, and which images stand for those that the manifests name
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from binaries.cache import Report
from binaries.go_tool import GoTool
from lab import cert_manager, cluster_api
from lab.cluster_api import providers
from lab.errors import SetupFailed
from lab.hub.layers import Program
from lab.hub.recipe import Recipe
from lab.layout import write_private
from lab.network import plan

Object = dict[str, Any]

_USER = 65532
"""Whom the core controllers' own manifest has them run as."""
_GROUP = "cert-manager.io"


def _image(tool: GoTool, path: str) -> Recipe:
    """An image of one program. clusterctl keeps the last part of an image's name, so it has the publisher's."""
    layer = Program(path=path, ensure=tool.ensure, pins=tool.pins)
    return Recipe(name=tool.program, layers=(layer,), entrypoint=(f"/{path}",), user=_USER)


CONTROLLER = _image(cluster_api.MANAGER, "manager")
CERT_MANAGER = _image(cert_manager.PROGRAM, "cert-manager")
IMAGES = (CONTROLLER, CERT_MANAGER)


def write(folder: Path, report: Report, given: Path | None, image: Recipe) -> None:
    """Make the folder again, from the start. Raises SetupFailed or ProgramMissing.

    `given` is a folder with more providers (see lab.cluster_api.providers), which `image` serves.
    """
    core = folder / "cluster-api" / cluster_api.version()
    certificates = folder / "cert-manager" / cert_manager.version()
    for directory in (core, certificates):
        directory.mkdir(parents=True, exist_ok=True)
    source = cluster_api.MANAGER.source(cluster_api.MODULE)
    write_private(core / "core-components.yaml", _built(source / "config" / "default", report))
    write_private(core / "metadata.yaml", (source / "metadata.yaml").read_text())
    definitions = cert_manager.PROGRAM.source(cert_manager.MODULE) / "deploy" / "crds"
    documents = [yaml.safe_load(path.read_text()) for path in sorted(definitions.glob(f"{_GROUP}_*.yaml"))]
    text = yaml.safe_dump_all([*documents, *_cert_manager()], sort_keys=False)
    write_private(certificates / "cert-manager.yaml", text)
    whole = configuration(folder)
    for each in providers.listed(given) if given else ():
        whole["providers"].append(each)
        whole["images"][providers.label(each)] = {"repository": plan.REGISTRY, "tag": image.key}
    write_private(folder / "clusterctl.yaml", yaml.safe_dump(whole, sort_keys=False))


def configuration(folder: Path) -> Object:
    """clusterctl's configuration for the folder."""
    version = cert_manager.version()
    core = folder / "cluster-api" / cluster_api.version() / "core-components.yaml"
    return {
        "providers": [{"name": "cluster-api", "type": "CoreProvider", "url": str(core)}],
        "cert-manager": {"url": str(folder / "cert-manager" / version / "cert-manager.yaml"), "version": version},
        "images": {
            "cluster-api": {"repository": plan.REGISTRY, "tag": CONTROLLER.key},
            "cert-manager": {"repository": plan.REGISTRY, "tag": CERT_MANAGER.key},
        },
    }


def _built(folder: Path, report: Report) -> str:
    """The output of kustomize for a folder."""
    command = [str(cluster_api.KUSTOMIZE.ensure(report)), "build", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise SetupFailed(f"kustomize cannot build {folder}: {done.stderr.strip()}")
    return done.stdout


def _cert_manager() -> list[Object]:
    """cert-manager's namespace, account, rights and program, without the parts that ours does not have."""
    name = {"name": "cert-manager", "namespace": "cert-manager"}
    labels = {"app.kubernetes.io/name": "cert-manager"}
    rights = "rbac.authorization.k8s.io"
    reads, writes = ["get", "list", "watch"], ["update", "patch"]
    of_ours = ("certificates", "certificaterequests", "issuers", "clusterissuers")
    rules = [
        _rule(_GROUP, of_ours, reads),
        _rule(_GROUP, ("certificaterequests",), ["create", "delete", "update", "patch"]),
        _rule(_GROUP, [f"{each}/{part}" for each in of_ours for part in ("status", "finalizers")], writes),
        _rule(_GROUP, ("signers",), ["approve"], resourceNames=[f"issuers.{_GROUP}/*", f"clusterissuers.{_GROUP}/*"]),
        _rule("", ("secrets",), [*reads, *writes, "create", "delete"]),
        _rule("", ("events",), ["create", "patch"]),
        _rule(
            "admissionregistration.k8s.io",
            ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
            [*reads, *writes],
        ),
        _rule("apiextensions.k8s.io", ("customresourcedefinitions",), [*reads, *writes]),
    ]
    container = {
        "name": "cert-manager",
        "image": f"quay.io/jetstack/cert-manager:{cert_manager.version()}",
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "serviceAccountName": "cert-manager",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "cert-manager"},
            "rules": rules,
        },
        {
            "apiVersion": f"{rights}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "cert-manager"},
            "roleRef": {"apiGroup": rights, "kind": "ClusterRole", "name": "cert-manager"},
            "subjects": [{"kind": "ServiceAccount", **name}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**name, "labels": labels},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},  # it does not ask whether another one leads
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]


def _rule(group: str, resources: tuple[str, ...] | list[str], verbs: list[str], **more: Any) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs, **more}
