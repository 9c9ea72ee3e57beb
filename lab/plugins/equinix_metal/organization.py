"""Organizations."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import organization_state
from lab.plugins.equinix_metal.inputs import ORGANIZATION
from lab.plugins.values import Json


class Organization(Bridged):
    """`equinix-metal:index/organization:Organization`."""

    computed = ("created", "updated")
    path = "/organizations"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(ORGANIZATION, client, log)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Have one made."""
        body = {name: inputs[name] for name in ORGANIZATION if inputs.get(name)}
        find = self._client.finder(self.path, "organizations", lambda found: found.get("name") == inputs["name"])
        return organization_state(await self._client.order(self.path, body, find))

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return organization_state(document)

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Everything can be changed."""
        body = {
            name: inputs.get(name) or "" for name in ORGANIZATION if (inputs.get(name) or "") != (olds.get(name) or "")
        }
        if body:
            await self._client.put(f"{self.path}/{request.resource_id}", body)
