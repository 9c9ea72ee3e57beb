"""The namespace that MetalLB brings, and the end of namespaces.

The latter is what kube-controller-manager's namespace controller does: it empties a namespace that is being deleted,
and lets it go. Without it a deleted namespace stays `Terminating` for ever. Whoever runs an API server calls
`finish` when something of a namespace changes, and again and again while one is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from lab.errors import LabError
from lab.kubernetes.access import Object, apply, send

METALLB = "metallb-system"
"""Where MetalLB's objects are looked for. It comes with MetalLB, not with its definitions: the lab has both."""

PATH = "/api/v1/namespaces"
_FINALIZER = "kubernetes"


def make(client: httpx.Client, name: str) -> None:
    """Create a namespace; repeating it changes nothing."""
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    apply(client, f"{PATH}/{name}", document)


def finish(client: httpx.Client) -> bool:
    """Empty all namespaces that are being deleted, and end those that are empty; whether none is left."""
    ended = True
    for namespace in send(client, "GET", PATH)["items"]:
        finalizers: list[str] = namespace.get("spec", {}).get("finalizers", [])
        if "deletionTimestamp" not in namespace["metadata"] or _FINALIZER not in finalizers:
            continue
        name: str = namespace["metadata"]["name"]
        if _empty(client, name):
            namespace["spec"]["finalizers"] = [each for each in finalizers if each != _FINALIZER]
            send(client, "PUT", f"{PATH}/{name}/finalize", json=namespace)
        else:
            ended = False
    return ended


def _empty(client: httpx.Client, namespace: str) -> bool:
    """Delete what is in it; true once there is nothing more (finalizers of objects are waited for)."""
    empty = True
    for path in _collections(client, namespace):
        items: list[Object] = send(client, "GET", path)["items"]
        for item in items:
            if "deletionTimestamp" not in item["metadata"]:
                response = client.delete(f"{path}/{item['metadata']['name']}")
                if response.is_error and response.status_code != 404:
                    raise LabError(f"{path}/{item['metadata']['name']} cannot be deleted: {response.text}")
        # Looked at again the next time: only what is gone by then counts as gone.
        empty = empty and not items
    return empty


def _collections(client: httpx.Client, namespace: str) -> Iterator[str]:
    """The paths of everything that can be in a namespace, whatever defined it; each kind in one of its versions."""
    groups: list[Object] = send(client, "GET", "/apis")["groups"]
    # Not only the preferred version: a group may have kinds that only an older one serves (MetalLB's does).
    bases = [f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]]
    seen: set[tuple[str, str]] = set()
    for base in ("/api/v1", *bases):
        group = base.rpartition("/")[0]
        for resource in send(client, "GET", base)["resources"]:
            name, verbs = resource["name"], set(resource["verbs"])
            known = (group, name) in seen
            if resource["namespaced"] and "/" not in name and {"list", "delete"} <= verbs and not known:
                seen.add((group, name))
                yield f"{base}/namespaces/{namespace}/{name}"
