"""Projects and their BGP configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import ApiError, Client
from lab.plugins.equinix_metal.documents import bgp_config_state, project_state
from lab.plugins.equinix_metal.inputs import PROJECT
from lab.plugins.values import Json


class Project(Bridged):
    """`equinix-metal:index/project:Project`."""

    computed = ("created", "updated", "organizationId", "paymentMethodId")
    optional = ("organizationId", "paymentMethodId")
    sensitive = ("bgpConfig.md5",)
    path = "/projects"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(PROJECT, client, log)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """Identifiers do not care for capitals; the API fills in a BGP configuration's status."""
        old, new = state.get(name), inputs.get(name)
        if name in self.optional:
            return str(old).strip('"').lower() == str(new).strip('"').lower()
        if name == "bgpConfig" and isinstance(old, Mapping) and isinstance(new, Mapping):
            return all(old.get(key) == value for key, value in new.items() if value and not str(key).startswith("__"))
        return False

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """The project first, then what can only be set on one that exists."""
        name = inputs["name"]
        wanted = {"name": name, "organization_id": inputs.get("organizationId")}
        body = {theirs: value for theirs, value in wanted.items() if value}
        find = self._client.finder(self.path, "projects", lambda found: found.get("name") == name, name=str(name))
        identifier: str = (await self._client.order(self.path, body, find))["id"]
        try:
            if inputs.get("bgpConfig"):
                await self._configure_bgp(identifier, inputs["bgpConfig"])
            if inputs.get("backendTransfer"):
                await self._client.patch(f"{self.path}/{identifier}", {"backend_transfer_enabled": True})
            state = await self.fetch(identifier, inputs)
        except (PluginError, asyncio.CancelledError) as error:
            raise self.kept({"id": identifier, "name": name}, str(error) or "cancelled") from None
        if state is None:
            raise PluginError(f"project {name} ({identifier}) disappeared as soon as it was made")
        return state

    async def _configure_bgp(self, identifier: str, wanted: Mapping[str, Json]) -> None:
        body: dict[str, Json] = {"deployment_type": wanted["deploymentType"], "asn": int(wanted["asn"])}
        if wanted.get("md5"):
            body["md5"] = wanted["md5"]
        await self._client.act(f"/projects/{identifier}/bgp-configs", body)

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        state = await super().fetch(identifier, known)
        bgp = await bgp_config(self._client, identifier) if state else None
        return {**state, "bgpConfig": bgp} if state and bgp else state

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """All but the BGP configuration, which the API tells elsewhere."""
        return project_state(document, known)

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Everything but the organization can be changed; a BGP configuration cannot be taken away."""
        if olds.get("bgpConfig") and not inputs.get("bgpConfig"):
            raise PluginError(f"project {olds.get('name')}: bgpConfig cannot be removed from a project, add it again")
        names = {"name": "name", "paymentMethodId": "payment_method_id", "backendTransfer": "backend_transfer_enabled"}
        body = {
            theirs: inputs[ours] for ours, theirs in names.items() if ours in inputs and inputs[ours] != olds.get(ours)
        }
        if body:
            await self._client.patch(f"{self.path}/{request.resource_id}", body)
        if inputs.get("bgpConfig") and not self.same("bgpConfig", olds, inputs):
            await self._configure_bgp(request.resource_id, inputs["bgpConfig"])


async def bgp_config(client: Client, project: str) -> dict[str, Json] | None:
    """None where there is none, and, as officially, where the API does not tell: but only when it said no."""
    try:
        document = (await client.get(f"/projects/{project}/bgp-config")).document
    except ApiError:
        return None
    return bgp_config_state(document) if document.get("id") else None
