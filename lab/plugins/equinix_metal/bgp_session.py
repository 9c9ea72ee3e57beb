"""BGP sessions of Metal's routers with devices."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import session_state
from lab.plugins.equinix_metal.inputs import BGP_SESSION
from lab.plugins.values import Json


class BgpSession(Bridged):
    """`equinix-metal:index/bgpSession:BgpSession`."""

    computed = ("status",)
    path = "/bgp/sessions"
    include = "device"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(BGP_SESSION, client, log)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Open it; that the device answers is not waited for."""
        path, family = f"/devices/{inputs['deviceId']}/bgp/sessions", inputs["addressFamily"]
        find = self._client.finder(path, "bgp_sessions", lambda found: found.get("address_family") == family)
        body = {"address_family": family, "default_route": bool(inputs.get("defaultRoute"))}
        return session_state(await self._client.order(path, body, find))

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return session_state(document)
