"""A machine's node in its cluster: its readiness, cordoning, and other calls to the cluster's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.gates.https import Answer, Api, is_ready
from metal_ipi.provider.resources.installation import BEING_INSTALLED

_NODES = "/api/v1/nodes"
_OURS = "/api/v1/namespaces/kube-system/configmaps"
CORDONED = "metal-ipi/cordoned"
"""The annotation of nodes that were cordoned here. Nodes without it stay cordoned after the installation."""


class Unreachable(RemoteError):
    """The cluster's API does not answer."""


class Refused(ProviderError):
    """The cluster's API refuses a request."""


class Cluster:
    """The API of the cluster to which the machines belong. Transient errors are retried."""

    def __init__(self, credentials: Mapping[str, Any], *, patience: float) -> None:
        self._url = str(credentials["url"])
        self.api = Api(credentials)
        self._patience = patience

    async def node(self, name: str) -> Mapping[str, Any] | None:
        """The node; None if it has not joined."""
        return await self._read(f"{_NODES}/{name}", f"node {name}")

    async def away(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the nodes that are unavailable, and why: not Ready, or being installed by another run."""
        nodes = {str(item["metadata"]["name"]): item for item in await self._list(_NODES, "the nodes")}
        found = {name: _away(nodes.get(name)) for name in names}
        return {name: why for name, why in found.items() if why}

    async def operator(self, name: str) -> Mapping[str, Any] | None:
        """One of OpenShift's cluster operators; None if it does not exist."""
        return await self._read(f"/apis/config.openshift.io/v1/clusteroperators/{name}", f"cluster operator {name}")

    async def cordon(self, name: str, generation: str) -> None:
        """Cordon a node, and note in the same request that we did. On a node that is cordoned already, only set the
        label that keeps health checks from restarting its machine."""
        node = await self.node(name)
        if node is None:
            return
        metadata: dict[str, Any] = {} if _is_labelled(node) else {"labels": {BEING_INSTALLED: ""}}
        body: dict[str, Any] = {"metadata": metadata}
        if not (node.get("spec") or {}).get("unschedulable"):
            metadata["annotations"] = {CORDONED: generation}
            body["spec"] = {"unschedulable": True}
        if metadata:
            await self._ask("PATCH", f"{_NODES}/{name}", f"cordon node {name}", body)

    async def uncordon(self, name: str) -> bool:
        """Uncordon a node if it was cordoned here, and remove the label for health checks. Returns whether pods may
        come."""
        node = await self.node(name)
        if node is None:
            return True  # a node that joins again is not cordoned
        metadata: dict[str, Any] = {"labels": {BEING_INSTALLED: None}} if _is_labelled(node) else {}
        body: dict[str, Any] = {"metadata": metadata}
        ours = CORDONED in (node["metadata"].get("annotations") or {})
        if ours:
            metadata["annotations"] = {CORDONED: None}
            body["spec"] = {"unschedulable": None}
        if metadata:
            await self._ask("PATCH", f"{_NODES}/{name}", f"uncordon node {name}", body)
        return ours or not (node.get("spec") or {}).get("unschedulable")

    async def patch_node(self, node: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
        """Apply a merge patch to a Node object. Returns False if the object has changed since, or was replaced."""
        name = node["metadata"]["name"]
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), **_as_read(node)}}
        answer = await self._ask("PATCH", f"{_NODES}/{name}", f"change node {name}", body, fine=(404, 409))
        return not answer.problem

    async def remove_node(self, node: Mapping[str, Any]) -> None:
        """Delete a Node object, unless it has changed since it was read."""
        name = node["metadata"]["name"]
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": _as_read(node)}
        await self._ask("DELETE", f"{_NODES}/{name}", f"remove node {name}", body, fine=(404, 409))

    async def config_map(self, name: str, namespace: str = "kube-system") -> Mapping[str, str] | None:
        """The data of a ConfigMap; None if there is none."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = await self._read(path, f"ConfigMap {namespace}/{name}")
        return None if found is None else found.get("data") or {}

    async def write_config_map(self, name: str, data: Mapping[str, str]) -> None:
        """Create or replace a ConfigMap of ours."""
        metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "metal-ipi"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
        what = f"write ConfigMap kube-system/{name}"
        answer = await self._ask("PUT", f"{_OURS}/{name}", what, body, fine=(404,))
        if answer.status == 404:
            await self._ask("POST", _OURS, what, body)

    async def delete_config_map(self, name: str) -> None:
        """Delete a ConfigMap of ours, if it exists."""
        await self._ask("DELETE", f"{_OURS}/{name}", f"delete ConfigMap kube-system/{name}", {}, fine=(404,))

    async def pods(self, node: str) -> list[Mapping[str, Any]]:
        """All pods on a node."""
        return await self._list(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}", f"the pods of {node}")

    async def pods_of(self, namespace: str, label: str) -> list[Mapping[str, Any]]:
        """The pods of a namespace with a label, `key=value`."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={label.replace('=', '%3D')}"
        return await self._list(path, f"the pods of {namespace}")

    async def delete_secret(self, namespace: str, name: str) -> None:
        """Delete a Secret, if it exists."""
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        await self._ask("DELETE", path, f"delete Secret {namespace}/{name}", {}, fine=(404,))

    async def evict(self, pod: Mapping[str, Any]) -> Answer:
        """Request a pod's eviction once; the caller evaluates the answer."""
        place = {key: str(pod["metadata"][key]) for key in ("name", "namespace")}
        options = {"preconditions": {"uid": str(pod["metadata"]["uid"])}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": place, "deleteOptions": options}
        path = f"/api/v1/namespaces/{place['namespace']}/pods/{place['name']}/eviction"
        return await self.api.request("POST", path, body)

    async def _read(self, path: str, what: str) -> Mapping[str, Any] | None:
        """An object; None if there is none."""
        answer = await self._ask("GET", path, f"read {what}", fine=(404,))
        return None if answer.status == 404 else answer.body

    async def _list(self, path: str, what: str) -> list[Mapping[str, Any]]:
        return list((await self._ask("GET", path, f"list {what}")).body.get("items") or [])

    async def _ask(
        self, method: str, path: str, what: str, body: Mapping[str, Any] | None = None, *, fine: tuple[int, ...] = ()
    ) -> Answer:
        """Send a request until the answer is 2xx, or one of the statuses in `fine`. Raises Refused or Unreachable.

        `what` completes «asked to …» in the error.
        """
        backoff = Backoff(timeout=self._patience, longest=2.0)
        while True:
            answer = await self.api.request(method, path, body)
            if not answer.problem or answer.status in fine:
                return answer
            if (400 <= answer.status < 500 and answer.status != 429) or answer.status == 501:
                said = answer.body.get("message") or answer.problem
                raise Refused(f"the cluster at {self._url} refuses to {what}: {said}")
            if backoff.over:
                raise Unreachable(f"the cluster at {self._url} cannot be asked to {what}: {answer.problem}")
            await backoff.pause()


def _as_read(node: Mapping[str, Any]) -> dict[str, Any]:
    """Preconditions: the object is still the one that was read."""
    return {key: node["metadata"][key] for key in ("uid", "resourceVersion")}


def _is_labelled(node: Mapping[str, Any]) -> bool:
    return BEING_INSTALLED in (node["metadata"].get("labels") or {})


def boot_of(node: Mapping[str, Any] | None) -> str:
    """The id of the boot in which the kubelet last reported; empty if unknown."""
    return str((((node or {}).get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")


def _away(node: Mapping[str, Any] | None) -> str | None:
    if node is None:
        return "has not joined"
    if not is_ready(node):
        return "is not Ready"
    return "is being installed" if CORDONED in (node["metadata"].get("annotations") or {}) else None
