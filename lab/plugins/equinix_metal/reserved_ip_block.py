"""Blocks of elastic addresses that a project reserves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, InitFailed, PluginError
from lab.plugins.equinix_metal.bridged import Unchanging
from lab.plugins.equinix_metal.client import Client, Gone, created_since
from lab.plugins.equinix_metal.documents import block_state
from lab.plugins.equinix_metal.inputs import RESERVED_IP_BLOCK, block_rules
from lab.plugins.values import Json, plain_map, wrap_map

PENDING = "pending"
"""The state of a block that somebody at Equinix Metal has to approve first."""


class ReservedIpBlock(Unchanging):
    """`equinix-metal:index/reservedIpBlock:ReservedIpBlock`."""

    computed = (
        "address",
        "addressFamily",
        "cidr",
        "cidrNotation",
        "gateway",
        "global",
        "manageable",
        "management",
        "netmask",
        "network",
        "public",
    )
    optional = ("facility",)

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(RESERVED_IP_BLOCK, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.block_rules`."""
        return block_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A metro in capitals, or only given or only told for a block of a facility; tags in another order."""
        old, new = state.get(name), inputs.get(name)
        if name == "metro":
            return str(old or "").lower() == str(new or "").lower() or bool(state.get("facility") and not (old and new))
        if name == "tags":
            return sorted(old or []) == sorted(new or [])
        return False

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Reserve it."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        document = await self._client.order(
            f"/projects/{inputs['projectId']}/ips", _body(inputs), lambda since: self._find(inputs, since)
        )
        state = block_state(document)
        if document.get("state") == PENDING:
            reason = (
                f"block {document['id']} of {int(inputs['quantity'])} addresses waits for approval by Equinix Metal"
            )
            raise InitFailed(document["id"], wrap_map(state), reason)
        return api.CreateResponse(document["id"], wrap_map(state))

    async def _find(self, inputs: Mapping[str, Json], since: datetime) -> dict[str, Json] | None:
        """A block like this one, made since: blocks have no names, so description and tags must tell them apart."""
        project = inputs["projectId"]
        if not inputs.get("description") and not inputs.get("tags"):
            raise PluginError(
                f"the outcome of reserving addresses in project {project} is not known, and without description and "
                "tags the block cannot be looked for: look in the project before you try again"
            )
        wanted = {**inputs, "metro": str(inputs.get("metro") or "").lower() or None}
        page: Json = 1
        while page:
            answer = await self._client.get(f"/projects/{project}/ips", per_page="250", page=str(page))
            blocks: list[dict[str, Json]] = answer.document.get("ip_addresses") or []
            for block in blocks:
                state = block_state(block)
                alike = all(
                    state.get(name) == wanted.get(name) or self.same(name, state, wanted)
                    for name in ("type", "quantity", "metro", "facility", "description", "tags")
                )
                if alike and created_since(block, since, answer.server_time):
                    return block
            page = page + 1 if (answer.document.get("meta") or {}).get("next") else None
        return None

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`; a block that still waits for approval cannot be used."""
        try:
            document = (await self._client.get(f"/ips/{identifier}")).document
        except Gone:
            return None
        if document.get("state") == PENDING:
            raise PluginError(f"block {identifier} still waits for approval by Equinix Metal")
        return block_state(document)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Release it; the API refuses while addresses of it are assigned."""
        await self._client.delete(f"/ips/{request.resource_id}")


def _body(inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The request for a new block; empty values are left out, as the official plug-in does."""
    names = {"metro": "metro", "facility": "facility", "description": "details", "tags": "tags"}
    body = {theirs: inputs[ours] for ours, theirs in names.items() if inputs.get(ours)}
    if "metro" in body:
        body["metro"] = str(body["metro"]).lower()
    return {"type": inputs["type"], "quantity": int(inputs["quantity"]), **body}
