"""The install state of a cluster: a Secret of its namespace, with one key for each resource that was made.

Only the keys of changed resources are written, so steps never overwrite each other. What parallel steps have to write
is written at once: the API applies changes of one object one after the other, and begins again where two came together,
which takes long with an object of this size. `clusterctl move` moves the Secret, because the MetalIpiCluster owns it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from metal_ipi.cluster_api.api import SECRET, Api, ApiError, Object
from metal_ipi.cluster_api.engine.state import Entry, State
from metal_ipi.cluster_api.resources import MOVE_LABEL

CLUSTER_LABEL, NAME_LABEL = "cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/control-plane-name"
"""Labels: of what Cluster an object is, and of what control plane."""


class SecretStore:
    """See `engine.Store`."""

    def __init__(self, api: Api, owner: Object, cluster: str) -> None:
        """`owner` is the MetalIpiCluster, `cluster` the name of the Cluster."""
        self._api, self._owner, self._cluster = api, owner, cluster
        self._namespace = str(owner["metadata"]["namespace"])
        self.name = install_state_name(cluster)
        self._writing = asyncio.Lock()
        self._waiting: dict[str, str | None] = {}
        """What is to be written next: packed entries by key, None for one that is removed."""

    async def load(self) -> State:
        """The complete state. Raises StateError, ApiError."""
        found = await self._api.get(SECRET, self._namespace, self.name)
        entries = [Entry.unpacked(data) for data in ((found or {}).get("data") or {}).values()]
        return State(entries={entry.urn: entry for entry in entries})

    async def save(self, urn: str, entry: Entry | None) -> None:
        """Write one entry, with those that others have to write. Raises ApiError."""
        key = key_of(urn)
        self._waiting[key] = None if entry is None else await asyncio.to_thread(entry.packed)
        try:
            async with self._writing:
                if key in self._waiting:  # nobody else has written it
                    await self._write_all()
        except BaseException:
            self._waiting.pop(key, None)
            raise

    async def _write_all(self) -> None:
        data, self._waiting = self._waiting, {}
        try:
            await self._write(data)
        except BaseException:  # the others try again by themselves
            self._waiting = {**data, **self._waiting}
            raise

    async def _write(self, data: Mapping[str, str | None]) -> None:
        if await self._api.patch(SECRET, self._namespace, self.name, {"data": data}) is not None:
            return
        left = {key: text for key, text in data.items() if text is not None}
        if not left:
            return
        body = secret(self._cluster, owned_by(self._owner), left)
        body["metadata"]["name"] = self.name
        if await self._api.create(SECRET, self._namespace, body) is None:
            raise ApiError(f"Secret {self._namespace}/{self.name} was created by another process just now", 409)

    async def own(self) -> bool:
        """Make the MetalIpiCluster the owner of a Secret that came from elsewhere. Returns whether there is a Secret.
        Raises ApiError."""
        found = await self._api.get(SECRET, self._namespace, self.name)
        if found is not None and not found["metadata"].get("ownerReferences"):
            body = {"metadata": {"ownerReferences": [owned_by(self._owner)]}}
            await self._api.patch(SECRET, self._namespace, self.name, body)
        return found is not None

    async def is_owned(self) -> bool:
        """Whether there is one, and the MetalIpiCluster is its owner. Raises ApiError."""
        found = await self._api.get(SECRET, self._namespace, self.name)
        owners = ((found or {}).get("metadata") or {}).get("ownerReferences") or []
        return any(each["uid"] == self._owner["metadata"]["uid"] for each in owners)

    async def delete(self) -> None:
        """Deletes the Secret, when nothing is left of the cluster."""
        await self._api.delete(SECRET, self._namespace, self.name)


async def take_along(api: Api, namespace: str, name: str) -> None:
    """Make `clusterctl move` move a Secret without an owner. A missing Secret is not an error."""
    found = await api.get(SECRET, namespace, name)
    if found is not None and MOVE_LABEL not in (found["metadata"].get("labels") or {}):
        await api.patch(SECRET, namespace, name, {"metadata": {"labels": {MOVE_LABEL: ""}}})


def install_state_name(cluster: str) -> str:
    """The name of the Secret."""
    return f"{cluster}-install-state"


def key_of(urn: str) -> str:
    """A resource's key in the Secret."""
    return hashlib.sha256(urn.encode()).hexdigest()[:32]


def owned_by(owner: Object, *, controller: bool = False) -> dict[str, Any]:
    """A reference to an object's owner."""
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return {**reference, **({"controller": True, "blockOwnerDeletion": True} if controller else {})}


def secret(cluster: str, owner: Mapping[str, Any], data: Mapping[str, str | None]) -> Object:
    """A Secret of a Cluster, by the label and type of Cluster API's contract; `data` is base64."""
    metadata = {"labels": {CLUSTER_LABEL: cluster}, "ownerReferences": [owner]}
    return {"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": data}


def secret_value(cluster: str, owner: Object, text: str) -> Object:
    """A Secret with a single text, which its owner controls."""
    data = {"value": base64.b64encode(text.encode()).decode()}
    return secret(cluster, owned_by(owner, controller=True), data)
