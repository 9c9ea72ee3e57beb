"""SSH keys, of a project and of the user."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Gone, created_since
from lab.plugins.values import Json, plain_map, wrap_map


class SshKey(Bridged):
    """`…/sshKey:SshKey` and, with a `projectId`, `…/projectSshKey:ProjectSshKey`."""

    computed = ("created", "updated", "fingerprint", "ownerId")

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Registers it."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        path = f"/projects/{inputs['projectId']}/ssh-keys" if inputs.get("projectId") else "/ssh-keys"

        async def find(since: datetime) -> dict[str, Json] | None:
            answer = await self._client.get(path, per_page="100")
            keys: list[dict[str, Json]] = answer.document.get("ssh_keys") or []
            for key in keys:
                alike = (
                    key.get("label") == inputs["name"] and str(key.get("key")).strip() == inputs["publicKey"].strip()
                )
                if alike and created_since(key, since, answer.server_time):
                    return key
            return None

        document = await self._client.order(path, {"label": inputs["name"], "key": inputs["publicKey"]}, find)
        return api.CreateResponse(document["id"], wrap_map(_state(document, inputs)))

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        try:
            return _state((await self._client.get(f"/ssh-keys/{identifier}")).document, known)
        except Gone:
            return None

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Only its name can be changed."""
        olds = plain_map(request.olds)
        inputs = {**plain_map(request.news), **{name: olds[name] for name in request.ignore_changes if name in olds}}
        if request.preview:
            return api.UpdateResponse(wrap_map({**olds, "name": inputs["name"]}))
        await self._client.patch(f"/ssh-keys/{request.resource_id}", {"label": inputs["name"]})
        state = await self.fetch(request.resource_id, olds)
        if state is None:
            raise PluginError(f"SSH key {olds.get('name')} ({request.resource_id}) no longer exists: refresh")
        return api.UpdateResponse(wrap_map(state))

    async def delete(self, request: api.DeleteRequest) -> None:
        """Removes it."""
        await self._client.delete(f"/ssh-keys/{request.resource_id}")


def _state(document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    owner = document.get("owner") or document.get("entity") or {}
    href = str(owner.get("href") or "")
    identifier = href.rstrip("/").rsplit("/", 1)[-1]
    state: dict[str, Json] = {
        "id": document["id"],
        "name": document.get("label") or "",
        "publicKey": document.get("key") or "",
        "fingerprint": document.get("fingerprint") or "",
        "created": document.get("created_at") or "",
        "updated": document.get("updated_at") or "",
        "ownerId": identifier,
    }
    if "/projects/" in href:
        state["projectId"] = identifier
    elif known.get("projectId"):
        state["projectId"] = known["projectId"]
    return state
