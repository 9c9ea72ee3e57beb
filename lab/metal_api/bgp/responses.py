"""BGP as the API shows it, and its operations on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.bgp import models
from lab.metal_api.bgp.models import BgpConfig, BgpSession
from lab.metal_api.body import body_of
from lab.metal_api.devices.models import Device
from lab.metal_api.listing import BASE, link
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.network.bgp import Seen
from lab.network.plan import BGP_MAX_PREFIX, BGP_PEERS


def config_document(config: BgpConfig, sessions: list[Json]) -> Json:
    """A project's BGP configuration."""
    return {
        "id": config.id,
        "href": f"{BASE}/bgp-configs/{config.id}",
        "status": "enabled",
        "deployment_type": config.deployment_type,
        "asn": config.asn,
        "md5": config.md5,
        "max_prefix": BGP_MAX_PREFIX,
        "route_object": None,
        "ranges": [],
        "sessions": sessions,
        "project": link("projects", config.project_id),
        "created_at": config.created_at,
        "requested_at": config.created_at,
    }


def session_document(session: BgpSession, seen: Seen | None) -> Json:
    """A BGP session as the facility's routers see it, `unknown` while they do not."""
    return {
        "id": session.id,
        "href": f"{BASE}/bgp/sessions/{session.id}",
        "address_family": session.address_family,
        "default_route": session.default_route,
        "device": link("devices", session.device_id),
        "learned_routes": list(seen.learned) if seen else [],
        "status": ",".join(seen.states if seen else ["unknown"] * len(BGP_PEERS)),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }


class Responses(Operations):
    """One method per operation."""

    async def config(self, request: Request) -> Response:
        """Empty for a project that never asked for BGP: that is what the API's description says."""
        project = self.find(request, Project)
        config = models.config_of(self.account, project.id)
        if config is None:
            return JSONResponse({})
        seen = await self._seen()
        sessions = models.project_sessions(self.account, project.id)
        return self.shown(
            request, config_document(config, [session_document(entry, seen.get(entry.id)) for entry in sessions])
        )

    async def request_config(self, request: Request) -> Response:
        models.request_config(self.account, self.find(request, Project).id, await body_of(request))
        return await self.routed(request, None, 204)

    async def list_of_project(self, request: Request) -> Response:
        return await self._sessions(request, models.project_sessions(self.account, self.find(request, Project).id))

    async def list_of_device(self, request: Request) -> Response:
        return await self._sessions(request, models.device_sessions(self.account, self.find(request, Device)))

    async def create(self, request: Request) -> Response:
        entry = models.create_session(self.account, self.find(request, Device), await body_of(request))
        return await self.routed(request, session_document(entry, None), 201)

    async def show(self, request: Request) -> Response:
        entry, seen = self.find(request, BgpSession), await self._seen()
        return self.shown(request, session_document(entry, seen.get(entry.id)))

    async def delete(self, request: Request) -> Response:
        models.delete_session(self.account, self.find(request, BgpSession))
        return await self.routed(request, None, 204)

    async def neighbors(self, request: Request) -> Response:
        found = models.neighbors(self.account, self.find(request, Device))
        return self.listed(request, "bgp_neighbors", found, lambda entry: entry)

    async def _sessions(self, request: Request, entries: Sequence[BgpSession]) -> Response:
        """Lists of sessions are not paged by the real API."""
        seen = await self._seen()
        return self.listed(request, "bgp_sessions", entries, lambda entry: session_document(entry, seen.get(entry.id)))

    async def _seen(self) -> Mapping[str, Seen]:
        return await self.lab.routing.seen()
