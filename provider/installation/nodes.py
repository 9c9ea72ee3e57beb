"""A machine's node in its cluster: whether it is Ready, and whether pods may come to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.gates.https import Answer, Api

_NODES = "/api/v1/nodes"
_OURS = "/api/v1/namespaces/kube-system/configmaps"
CORDONED = "metal-ipi/cordoned"
"""Annotation of nodes that were cordoned here: others stay cordoned when their machine is installed again."""


class Unreachable(RemoteError):
    """The cluster's API does not answer."""


class Refused(ProviderError):
    """The cluster's API does not do what it was asked for."""


class Cluster:
    """The API of the cluster whose machines are installed. What may pass by itself is tried again."""

    def __init__(self, credentials: Mapping[str, Any], *, patience: float) -> None:
        self._url = str(credentials["url"])
        self.api = Api(credentials)
        self._patience = patience

    async def node(self, name: str) -> Mapping[str, Any] | None:
        """The node, or None where it has not joined."""
        answer = await self.ask(lambda: self.api.get(f"{_NODES}/{name}"), f"read node {name}", fine=(404,))
        return None if answer.status == 404 else answer.body

    async def away(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the nodes that serve nothing now, and why: not Ready, or being installed by another run."""
        answer = await self.ask(lambda: self.api.get(_NODES), "list the nodes")
        nodes = {str(item["metadata"]["name"]): item for item in answer.body.get("items") or []}
        found = {name: _away(nodes.get(name)) for name in names}
        return {name: why for name, why in found.items() if why}

    async def operator(self, name: str) -> Mapping[str, Any] | None:
        """One of OpenShift's cluster operators, or None where there is none."""
        path = f"/apis/config.openshift.io/v1/clusteroperators/{name}"
        answer = await self.ask(lambda: self.api.get(path), f"read cluster operator {name}", fine=(404,))
        return None if answer.status == 404 else answer.body

    async def cordon(self, name: str, generation: str) -> None:
        """Keeps new pods off a node, and notes who did so, both at once. One that is cordoned stays as it is."""
        node = await self.node(name)
        if node is None or (node.get("spec") or {}).get("unschedulable"):
            return
        body = {"metadata": {"annotations": {CORDONED: generation}}, "spec": {"unschedulable": True}}
        await self.ask(lambda: self.api.merge(f"{_NODES}/{name}", body), f"cordon node {name}")

    async def uncordon(self, name: str) -> bool:
        """Lets pods come again, if it was cordoned here. Answers whether they may."""
        node = await self.node(name)
        if node is None:
            return True  # a node that joins anew is not cordoned
        if CORDONED not in (node["metadata"].get("annotations") or {}):
            return not (node.get("spec") or {}).get("unschedulable")
        body = {"metadata": {"annotations": {CORDONED: None}}, "spec": {"unschedulable": None}}
        await self.ask(lambda: self.api.merge(f"{_NODES}/{name}", body), f"uncordon node {name}")
        return True

    async def patch_node(self, node: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
        """Merges into a Node object. Answers False where the object has changed since, or is another one now."""
        metadata = node["metadata"]
        same = {key: metadata[key] for key in ("uid", "resourceVersion")}
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), **same}}
        path = f"{_NODES}/{metadata['name']}"
        answer = await self.ask(lambda: self.api.merge(path, body), f"change node {metadata['name']}", fine=(404, 409))
        return not answer.problem

    async def remove_node(self, node: Mapping[str, Any]) -> None:
        """Removes a Node object, unless it has changed since it was read."""
        metadata = node["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {key: metadata[key] for key in ("uid", "resourceVersion")},
        }
        path = f"{_NODES}/{metadata['name']}"
        await self.ask(lambda: self.api.delete(path, body), f"remove node {metadata['name']}", fine=(404, 409))

    async def config_map(self, name: str, namespace: str = "kube-system") -> Mapping[str, str] | None:
        """What a ConfigMap holds; None where there is none."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        answer = await self.ask(lambda: self.api.get(path), f"read ConfigMap {namespace}/{name}", fine=(404,))
        return None if answer.status == 404 else answer.body.get("data") or {}

    async def write_config_map(self, name: str, data: Mapping[str, str]) -> None:
        """Makes or replaces a ConfigMap of ours."""
        metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "metal-ipi"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
        what = f"write ConfigMap kube-system/{name}"
        answer = await self.ask(lambda: self.api.put(f"{_OURS}/{name}", body), what, fine=(404,))
        if answer.status == 404:
            await self.ask(lambda: self.api.post(_OURS, body), what)

    async def delete_config_map(self, name: str) -> None:
        """Deletes a ConfigMap of ours, if it is there."""
        what = f"delete ConfigMap kube-system/{name}"
        await self.ask(lambda: self.api.delete(f"{_OURS}/{name}"), what, fine=(404,))

    async def pods(self, node: str) -> list[Mapping[str, Any]]:
        """All pods that are bound to a node."""
        path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
        return list((await self.ask(lambda: self.api.get(path), f"list the pods of {node}")).body.get("items") or [])

    async def pods_of(self, namespace: str, label: str) -> list[Mapping[str, Any]]:
        """The pods of a namespace that have a label, `key=value`."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={label.replace('=', '%3D')}"
        answer = await self.ask(lambda: self.api.get(path), f"list the pods of {namespace}")
        return list(answer.body.get("items") or [])

    async def delete_secret(self, namespace: str, name: str) -> None:
        """Deletes a Secret, if it is there."""
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        await self.ask(lambda: self.api.delete(path), f"delete Secret {namespace}/{name}", fine=(404,))

    async def evict(self, pod: Mapping[str, Any]) -> Answer:
        """Asks once that a pod goes; what the cluster says to that is the caller's to judge."""
        place = {key: str(pod["metadata"][key]) for key in ("name", "namespace")}
        options = {"preconditions": {"uid": str(pod["metadata"]["uid"])}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": place, "deleteOptions": options}
        return await self.api.post(f"/api/v1/namespaces/{place['namespace']}/pods/{place['name']}/eviction", body)

    async def ask(self, request: Any, what: str, *, fine: tuple[int, ...] = ()) -> Answer:
        """An answer that is good, or one of the statuses that are fine."""
        backoff = Backoff(timeout=self._patience, longest=2.0)
        while True:
            answer: Answer = await request()
            if not answer.problem or answer.status in fine:
                return answer
            if (400 <= answer.status < 500 and answer.status != 429) or answer.status == 501:
                said = answer.body.get("message") or answer.problem
                raise Refused(f"the cluster at {self._url} does not let us {what}: {said}")
            if backoff.over:
                raise Unreachable(f"the cluster at {self._url} cannot be asked to {what}: {answer.problem}")
            await backoff.pause()


def is_ready(node: Mapping[str, Any] | None) -> bool:
    """Whether a node says so, as far as the cluster knows."""
    conditions = ((node or {}).get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def boot_of(node: Mapping[str, Any] | None) -> str:
    """Id of the boot in which the kubelet last told of itself; empty where it does not tell."""
    return str((((node or {}).get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")


def _away(node: Mapping[str, Any] | None) -> str | None:
    if node is None:
        return "has not joined"
    if not is_ready(node):
        return "is not Ready"
    return "is being installed" if CORDONED in (node["metadata"].get("annotations") or {}) else None
