"""SSH keys of a project."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.documents import key_state
from lab.plugins.values import Json


class ProjectSshKey(Bridged):
    """`equinix-metal:index/projectSshKey:ProjectSshKey`."""

    computed = ("created", "updated", "fingerprint", "ownerId")
    path = "/ssh-keys"

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Registers it."""
        path = f"/projects/{inputs['projectId']}/ssh-keys"
        name, key = inputs["name"], inputs["publicKey"]

        def alike(found: dict[str, Json]) -> bool:
            return found.get("label") == name and str(found.get("key")).strip() == key.strip()

        find = self._client.finder(path, "ssh_keys", alike)
        return key_state(await self._client.order(path, {"label": name, "key": key}, find), inputs)

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return key_state(document, known)

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Only its name can be changed."""
        await self._client.patch(f"{self.path}/{request.resource_id}", {"label": inputs["name"]})
