"""BGP sessions of Metal's routers with devices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Unchanging
from lab.plugins.equinix_metal.client import Client, Gone, created_since
from lab.plugins.equinix_metal.documents import session_state
from lab.plugins.equinix_metal.inputs import BGP_SESSION
from lab.plugins.values import Json, plain_map, wrap_map


class BgpSession(Unchanging):
    """`equinix-metal:index/bgpSession:BgpSession`."""

    computed = ("status",)

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(BGP_SESSION, client, log)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Open it; that the device answers is not waited for."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        path = f"/devices/{inputs['deviceId']}/bgp/sessions"
        body = {"address_family": inputs["addressFamily"], "default_route": bool(inputs.get("defaultRoute"))}

        async def find(since: datetime) -> dict[str, Json] | None:
            answer = await self._client.get(path)
            sessions: list[dict[str, Json]] = answer.document.get("bgp_sessions") or []
            for session in sessions:
                alike = session.get("address_family") == inputs["addressFamily"]
                if alike and created_since(session, since, answer.server_time):
                    return session
            return None

        document = await self._client.order(path, body, find)
        return api.CreateResponse(document["id"], wrap_map(session_state(document)))

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        try:
            return session_state((await self._client.get(f"/bgp/sessions/{identifier}", include="device")).document)
        except Gone:
            return None

    async def delete(self, request: api.DeleteRequest) -> None:
        """Close it."""
        await self._client.delete(f"/bgp/sessions/{request.resource_id}")
