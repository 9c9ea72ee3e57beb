"""Runs inside the lab: uses the cluster as anybody with its kubeconfig does, by the official Python client.

python -m tests.end_to_end.kubernetes_user KUBECONFIG nodes           name → Ready, roles and taints, as JSON
python -m tests.end_to_end.kubernetes_user KUBECONFIG apply OBJECT    server-side apply; status and message of a refusal
python -m tests.end_to_end.kubernetes_user KUBECONFIG get PATH        one object, as JSON
python -m tests.end_to_end.kubernetes_user KUBECONFIG merge PATH CHANGE   a merge patch of one object
python -m tests.end_to_end.kubernetes_user KUBECONFIG version         gitVersion
"""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import kubernetes

official = cast("Any", kubernetes)
"""The client; what it says of its types is wrong."""


def nodes() -> dict[str, Any]:
    """What `kubectl get nodes` shows."""
    found: dict[str, Any] = {}
    for node in official.client.CoreV1Api().list_node().items:
        ready = next(each.status for each in node.status.conditions if each.type == "Ready")
        roles = sorted(label.partition("/")[2] for label in node.metadata.labels if "node-role" in label)
        taints = [taint.key for taint in node.spec.taints or ()]
        found[node.metadata.name] = {"ready": ready, "roles": roles, "taints": taints}
    return found


def apply(document: dict[str, Any]) -> dict[str, Any]:
    """What `kubectl apply --server-side` does: status, and message of a refusal."""
    cluster = official.dynamic.DynamicClient(official.client.ApiClient())
    kind = cluster.resources.get(api_version=document["apiVersion"], kind=document["kind"])
    try:
        kind.server_side_apply(
            body=document,
            name=document["metadata"]["name"],
            namespace=document["metadata"].get("namespace"),
            field_manager="user",
        )
    except official.client.ApiException as error:
        return {"status": error.status, "message": json.loads(error.body)["message"]}
    return {"status": 200, "message": ""}


def main() -> None:
    """One command."""
    official.config.load_kube_config(sys.argv[1])
    match sys.argv[2:]:
        case ["nodes"]:
            answer = nodes()
        case ["apply", text]:
            answer = apply(json.loads(text))
        case ["get", path]:
            answer = official.client.ApiClient().call_api(path, "GET", response_type="object")[0]
        case ["merge", path, text]:
            headers = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}
            answer = official.client.ApiClient().call_api(
                path, "PATCH", header_params=headers, body=json.loads(text), response_type="object"
            )[0]
        case ["version"]:
            answer = official.client.VersionApi().get_code().git_version
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
