"""SSH keys as the API shows them, and its operations on them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.listing import BASE, link, searched
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys import models
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.state import Account


def document(account: Account, key: SshKey) -> Json:
    """An SSH key; packngo reads its owner from `owner`, the API's description calls it `entity`."""
    owner = link("projects", key.project_id)
    return {
        "id": key.id,
        "href": f"{BASE}/ssh-keys/{key.id}",
        "label": key.label,
        "key": key.key,
        "fingerprint": ":".join(key.fingerprint[index : index + 2] for index in range(0, 32, 2)),
        "created_at": key.created_at,
        "updated_at": key.updated_at,
        "owner": owner,
        "entity": owner,
        "tags": key.tags,
    }


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        return self._keys(request, models.project_keys(self.account, self.find(request, Project).id))

    def _keys(self, request: Request, keys: Sequence[SshKey]) -> Response:
        """Key lists are not paged by the real API; it calls the same parameter `search` here and `query` there."""
        query = request.query_params
        text = query.get("search", query.get("query"))
        found = searched(keys, text, lambda key: (key.label, key.key, key.fingerprint))
        return self.listed(request, "ssh_keys", found, self.document)

    async def create_in_project(self, request: Request) -> Response:
        key = models.create(self.account, self.find(request, Project).id, await body_of(request))
        return self.saved(request, self.document(key), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self.find(request, SshKey)))

    async def update(self, request: Request) -> Response:
        key = self.find(request, SshKey)
        models.update(self.account, key, await body_of(request))
        return self.saved(request, self.document(key), 200)

    async def delete(self, request: Request) -> Response:
        models.delete(self.account, self.find(request, SshKey))
        return self.saved(request, None, 204)

    def document(self, key: SshKey) -> Json:
        return document(self.account, key)
