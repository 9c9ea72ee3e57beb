"""Projects and their BGP configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, InitFailed, PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import ApiError, Client, Gone, created_since
from lab.plugins.equinix_metal.inputs import PROJECT
from lab.plugins.values import Json, plain_map, wrap_map


class Project(Bridged):
    """`equinix-metal:index/project:Project`."""

    computed = ("created", "updated", "organizationId", "paymentMethodId")
    optional = ("organizationId", "paymentMethodId")
    sensitive = ("bgpConfig.md5",)

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(PROJECT, client, log)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """Identifiers do not care for capitals; the API fills in a BGP configuration's status."""
        old, new = state.get(name), inputs.get(name)
        if name in self.optional:
            return str(old).strip('"').lower() == str(new).strip('"').lower()
        if name == "bgpConfig" and isinstance(old, Mapping) and isinstance(new, Mapping):
            return all(old.get(key) == value for key, value in new.items() if not str(key).startswith("__"))
        return False

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """The project first, then what can only be set on one that exists."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        wanted = {"name": inputs["name"], "organization_id": inputs.get("organizationId")}
        body = {name: value for name, value in wanted.items() if value}

        async def find(since: datetime) -> dict[str, Json] | None:
            answer = await self._client.get("/projects", per_page="100", name=str(inputs["name"]))
            projects: list[dict[str, Json]] = answer.document.get("projects") or []
            for project in projects:
                if project.get("name") == inputs["name"] and created_since(project, since, answer.server_time):
                    return project
            return None

        document = await self._client.order("/projects", body, find)
        identifier: str = document["id"]
        try:
            if inputs.get("bgpConfig"):
                await self._configure_bgp(identifier, inputs["bgpConfig"])
            if inputs.get("backendTransfer"):
                await self._client.patch(f"/projects/{identifier}", {"backend_transfer_enabled": True})
            state = await self.fetch(identifier, inputs)
        except (PluginError, asyncio.CancelledError) as error:
            reason = str(error) or "cancelled"
            raise InitFailed(identifier, wrap_map({"id": identifier, "name": inputs["name"]}), reason) from None
        if state is None:
            raise PluginError(f"project {inputs['name']} ({identifier}) disappeared as soon as it was made")
        return api.CreateResponse(identifier, self.concealed(wrap_map(state)))

    async def _configure_bgp(self, identifier: str, wanted: Mapping[str, Json]) -> None:
        body: dict[str, Json] = {"deployment_type": wanted["deploymentType"], "asn": int(wanted["asn"])}
        if wanted.get("md5"):
            body["md5"] = wanted["md5"]
        await self._client.act(f"/projects/{identifier}/bgp-configs", body)

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        try:
            document = (await self._client.get(f"/projects/{identifier}")).document
        except Gone:
            return None
        state: dict[str, Json] = {
            "id": document["id"],
            "name": document.get("name") or "",
            "organizationId": _last(document.get("organization")),
            "created": document.get("created_at") or "",
            "updated": document.get("updated_at") or "",
            "backendTransfer": bool(document.get("backend_transfer_enabled")),
            "paymentMethodId": _last(document.get("payment_method")) or known.get("paymentMethodId") or "",
        }
        bgp = await self._bgp(identifier)
        if bgp:
            state["bgpConfig"] = bgp
        return state

    async def _bgp(self, identifier: str) -> dict[str, Json] | None:
        """None where there is none, and, as officially, where the API does not tell: but only when it said no."""
        try:
            document = (await self._client.get(f"/projects/{identifier}/bgp-config")).document
        except ApiError:
            return None
        if not document.get("id"):
            return None
        return {
            "deploymentType": document.get("deployment_type") or "",
            "asn": document.get("asn") or 0,
            "md5": document.get("md5") or "",
            "status": document.get("status") or "",
            "maxPrefix": document.get("max_prefix") or 0,
        }

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Everything but the organization can be changed; a BGP configuration cannot be taken away."""
        olds = plain_map(request.olds)
        inputs = {**plain_map(request.news), **{name: olds[name] for name in request.ignore_changes if name in olds}}
        if request.preview:
            changed = {name: value for name, value in inputs.items() if name in PROJECT}
            return api.UpdateResponse(self.concealed(wrap_map({**olds, **changed})))
        if olds.get("bgpConfig") and not inputs.get("bgpConfig"):
            raise PluginError(f"project {olds.get('name')}: bgpConfig cannot be removed from a project, add it again")
        names = {"name": "name", "paymentMethodId": "payment_method_id", "backendTransfer": "backend_transfer_enabled"}
        body = {
            theirs: inputs[ours] for ours, theirs in names.items() if ours in inputs and inputs[ours] != olds.get(ours)
        }
        if body:
            await self._client.patch(f"/projects/{request.resource_id}", body)
        if inputs.get("bgpConfig") and not self.same("bgpConfig", olds, inputs):
            await self._configure_bgp(request.resource_id, inputs["bgpConfig"])
        state = await self.fetch(request.resource_id, olds)
        if state is None:
            raise PluginError(f"project {olds.get('name')} ({request.resource_id}) no longer exists: refresh")
        return api.UpdateResponse(self.concealed(wrap_map(state)))

    async def delete(self, request: api.DeleteRequest) -> None:
        """The API refuses while there are devices in it."""
        await self._client.delete(f"/projects/{request.resource_id}")


def _last(reference: Json) -> str:
    """The identifier at the end of a reference's href."""
    href = reference.get("href") if isinstance(reference, Mapping) else None
    return str(href).rstrip("/").rsplit("/", 1)[-1] if href else ""
