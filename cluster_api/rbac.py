"""What the providers may do: `python -m metal_ipi.cluster_api.rbac [NAMESPACE]` prints account, roles and bindings.

Secrets are read and written by name only, and neither listed nor watched, so the providers only see Secrets that an
object of the same namespace names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import yaml

from metal_ipi.cluster_api.api import CLUSTER, LEASE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, Resource
from metal_ipi.cluster_api.resources import KINDS, METAL_IPI_MACHINE, OPENSHIFT_CONFIG, OPENSHIFT_CONTROL_PLANE

NAME = "metal-ipi-controller-manager"
"""Of account, roles and bindings."""
_WATCH = ("get", "list", "watch")
_LABELS = {"app.kubernetes.io/name": NAME}


def _rule(resource: Resource, *verbs: str, subresource: str = "") -> dict[str, Any]:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return {"apiGroups": [resource.group], "resources": [plural], "verbs": list(verbs)}


def rules() -> list[dict[str, Any]]:
    """In all namespaces."""
    owners = (OPENSHIFT_CONFIG.resource, OPENSHIFT_CONTROL_PLANE.resource)
    return [
        *(_rule(kind.resource, *_WATCH, "patch") for kind in KINDS),
        *(_rule(kind.resource, "patch", subresource="status") for kind in KINDS),
        *(_rule(kind.resource, "create") for kind in (METAL_IPI_MACHINE, OPENSHIFT_CONFIG)),
        # OpenShift's admission requires the right to set finalizers of the owner from whoever creates an object that
        # blocks the owner's deletion.
        *(_rule(owner, "update", subresource="finalizers") for owner in owners),
        _rule(METAL_IPI_MACHINE.template, "get"),
        _rule(CLUSTER, *_WATCH),
        _rule(MACHINE, *_WATCH, "create", "delete", "patch"),
        _rule(MACHINE, "patch", subresource="status"),
        *(_rule(owner, "get") for owner in (MACHINE_DEPLOYMENT, MACHINE_SET)),
        _rule(SECRET, "get", "create", "patch", "delete"),
    ]


def own_rules() -> list[dict[str, Any]]:
    """In the providers' own namespace."""
    return [_rule(LEASE, "get", "list", "create", "update", "delete")]


def objects(namespace: str, subjects: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Account, roles and bindings; `subjects` have the roles in place of the account."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    bound = list(subjects) or [account]
    api = "rbac.authorization.k8s.io/v1"
    whole, own = {"name": NAME, "labels": _LABELS}, {"name": NAME, "namespace": namespace, "labels": _LABELS}

    def reference(kind: str) -> dict[str, str]:
        return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME}

    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(own)},
        {"apiVersion": api, "kind": "ClusterRole", "metadata": dict(whole), "rules": rules()},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": dict(whole),
            "roleRef": reference("ClusterRole"),
            "subjects": bound,
        },
        {"apiVersion": api, "kind": "Role", "metadata": dict(own), "rules": own_rules()},
        {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": dict(own),
            "roleRef": reference("Role"),
            "subjects": bound,
        },
    ]


if __name__ == "__main__":
    yaml.safe_dump_all(objects(sys.argv[1] if sys.argv[1:] else "metal-ipi-system"), sys.stdout, sort_keys=False)
