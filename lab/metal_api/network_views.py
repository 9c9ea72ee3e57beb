"""Operations on addresses and BGP: parse, ask the account, have the router follow, answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api import bgp, elastic
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.models import Assignment, BgpSession, Device, Json, Reservation
from lab.metal_api.network_responses import (
    address_document,
    assignment_document,
    block_document,
    config_document,
    reservation_document,
    session_document,
)
from lab.metal_api.operations import Operations, body_of, value_of
from lab.metal_api.responses import View, device_addresses, device_document, project_document
from lab.metal_api.routing import Routing
from lab.metal_api.state import Account
from lab.metal_api.store import Store
from lab.network.bgp import Seen

RESERVATIONS_PER_PAGE = 250


class NetworkViews(Operations):
    """One method per operation; the routes are in `urls`."""

    def __init__(self, account: Account, routing: Routing, store: Store) -> None:
        super().__init__(account, store)
        self._routing = routing

    async def _routed(self, document: Json | None, status: int) -> Response:
        """Answer a change once it is on disk and the router has followed it."""
        answer = await self._saved(document, status)
        await self._routing.commit()
        return answer

    def _device(self, request: Request) -> Device:
        return self._account.device(request.path_params["id"])

    # Elastic addresses

    async def project_ips(self, request: Request) -> Response:
        """All blocks of a project: the /31s behind its devices' own addresses, and what was reserved."""
        account, query, view = self._account, request.query_params, View.of(request.query_params)
        project = request.path_params["id"]
        found = [
            reservation_document(device, index)
            for device in account.project_devices(project)
            for index in range(len(device.addresses))
        ]
        found += [self._shown(block, view) for block in elastic.project_blocks(account, project)]
        wanted = [kind for text in [*query.getlist("types[]"), *query.getlist("types")] for kind in text.split(",")]
        found = [entry for entry in found if not wanted or entry["type"] in wanted]
        return self._list(request, "ip_addresses", found, lambda entry: entry, per_page=RESERVATIONS_PER_PAGE)

    async def reserve(self, request: Request) -> Response:
        block = elastic.reserve(self._account, request.path_params["id"], await body_of(request))
        return await self._routed(self._shown(block, View.of(request.query_params)), 201)

    async def ip(self, request: Request) -> Response:
        """A block or an assignment, elastic or of a device's own."""
        identity = request.path_params["id"]
        own = self._own(identity)
        if own is not None:
            return JSONResponse(own)
        return JSONResponse(self._shown(elastic.find(self._account, identity), View.of(request.query_params)))

    async def update_ip(self, request: Request) -> Response:
        self._refuse_own(request, "changed")
        record = elastic.find(self._account, request.path_params["id"])
        elastic.update(self._account, record, await body_of(request))
        return await self._saved(self._shown(record, View.of(request.query_params)), 200)

    async def delete_ip(self, request: Request) -> Response:
        """Release a block, or take an assignment back."""
        self._refuse_own(request, "deleted")
        record = elastic.find(self._account, request.path_params["id"])
        if isinstance(record, Reservation):
            elastic.release(self._account, record)
        else:
            elastic.unassign(self._account, record)
        return await self._routed(None, 204)

    async def device_ips(self, request: Request) -> Response:
        return JSONResponse({"ip_addresses": device_addresses(self._account, self._device(request))})

    async def assign(self, request: Request) -> Response:
        entry = elastic.assign(self._account, self._device(request), await body_of(request))
        return await self._routed(assignment_document(self._account, entry), 201)

    def _own(self, identity: str) -> Json | None:
        """A device's own address, or the block behind it."""
        for device in self._account.devices.values():
            for index in range(len(device.addresses)):
                for document in (address_document(device, index), reservation_document(device, index)):
                    if document["id"] == identity:
                        return document
        return None

    def _refuse_own(self, request: Request, what: str) -> None:
        if self._own(request.path_params["id"]) is not None:
            raise Unprocessable(f"Management addresses cannot be {what}: they go with their device")

    def _shown(self, record: Reservation | Assignment, view: View) -> Json:
        account = self._account
        if isinstance(record, Assignment):
            return assignment_document(account, record)
        document = block_document(account, record)
        if "project" in view.include:
            document["project"] = project_document(account, account.project(record.project_id))
        if "assignments" in view.include:
            entries = elastic.assignments_of(account, record)
            document["assignments"] = [assignment_document(account, entry) for entry in entries]
        for name in ("metro", "facility"):
            document[name] = view.whole(name, document[name]) if document[name] else None
        return document

    # BGP

    async def bgp_config(self, request: Request) -> Response:
        """Empty for a project that never asked for BGP: that is what the API's description says."""
        project = self._account.project(request.path_params["id"])
        config = self._account.bgp_configs.get(project.id)
        if config is None:
            return JSONResponse({})
        seen, view = await self._routing.seen(), View.of(request.query_params)
        sessions = [self._session(entry, seen, view) for entry in bgp.project_sessions(self._account, project.id)]
        return JSONResponse(config_document(config, sessions))

    async def request_bgp_config(self, request: Request) -> Response:
        bgp.request_config(self._account, request.path_params["id"], await body_of(request))
        return await self._routed(None, 204)

    async def project_sessions(self, request: Request) -> Response:
        return await self._sessions(request, bgp.project_sessions(self._account, request.path_params["id"]))

    async def device_sessions(self, request: Request) -> Response:
        return await self._sessions(request, bgp.device_sessions(self._account, self._device(request)))

    async def create_session(self, request: Request) -> Response:
        entry = bgp.create_session(self._account, self._device(request), await body_of(request))
        return await self._routed(session_document(entry, None), 201)

    async def session(self, request: Request) -> Response:
        entry = bgp.session(self._account, request.path_params["id"])
        return JSONResponse(self._session(entry, await self._routing.seen(), View.of(request.query_params)))

    async def update_session(self, request: Request) -> Response:
        """The body is the new value alone, as described; an object with it is taken as well."""
        entry, body = bgp.session(self._account, request.path_params["id"]), await value_of(request)
        wanted = cast("Json", body).get("default_route") if isinstance(body, dict) else body
        bgp.update_session(self._account, entry, wanted)
        return await self._routed(session_document(entry, None), 200)

    async def delete_session(self, request: Request) -> Response:
        bgp.delete_session(self._account, bgp.session(self._account, request.path_params["id"]))
        return await self._routed(None, 204)

    async def bgp_neighbors(self, request: Request) -> Response:
        return JSONResponse({"bgp_neighbors": bgp.neighbors(self._account, self._device(request))})

    async def _sessions(self, request: Request, entries: list[BgpSession]) -> Response:
        """Lists of sessions are not paged by the real API."""
        view, seen = View.of(request.query_params), await self._routing.seen()
        return JSONResponse({"bgp_sessions": [self._session(entry, seen, view) for entry in entries]})

    def _session(self, entry: BgpSession, seen: Mapping[str, Seen], view: View) -> Json:
        device, document = self._account.device(entry.device_id), session_document(entry, seen.get(entry.id))
        href = document["device"]["href"]
        document["device"] = view.link("device", href, lambda: device_document(self._account, device))
        return document
