"""Elastic addresses that are assigned to a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Unchanging
from lab.plugins.equinix_metal.client import Client, Gone, created_since
from lab.plugins.equinix_metal.documents import attachment_state
from lab.plugins.equinix_metal.inputs import IP_ATTACHMENT, attachment_rules
from lab.plugins.values import Json, plain_map, wrap_map


class IpAttachment(Unchanging):
    """`equinix-metal:index/ipAttachment:IpAttachment`."""

    computed = (
        "address",
        "addressFamily",
        "cidr",
        "gateway",
        "global",
        "manageable",
        "management",
        "netmask",
        "network",
        "public",
    )

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(IP_ATTACHMENT, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.attachment_rules`."""
        return attachment_rules(inputs)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Assign them."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        path = f"/devices/{inputs['deviceId']}/ips"

        async def find(since: datetime) -> dict[str, Json] | None:
            answer = await self._client.get(path)
            entries: list[dict[str, Json]] = answer.document.get("ip_addresses") or []
            for entry in entries:
                alike = attachment_state(entry)["cidrNotation"] == inputs["cidrNotation"]
                if alike and created_since(entry, since, answer.server_time):
                    return entry
            return None

        document = await self._client.order(path, {"address": inputs["cidrNotation"]}, find)
        return api.CreateResponse(document["id"], wrap_map(attachment_state(document)))

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        try:
            return attachment_state((await self._client.get(f"/ips/{identifier}")).document)
        except Gone:
            return None

    async def delete(self, request: api.DeleteRequest) -> None:
        """Take them back."""
        await self._client.delete(f"/ips/{request.resource_id}")
