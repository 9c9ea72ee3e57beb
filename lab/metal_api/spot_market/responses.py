"""The spot market as the API shows it, and its operations."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import Body, body_of
from lab.metal_api.catalog.models import FACILITIES, METROS, PLANS, Facility, Metro, named, stable_id
from lab.metal_api.catalog.responses import facility_document, metro_document
from lab.metal_api.devices.models import GONE, Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.listing import BASE, View, flag, link
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.spot_market import models, prices
from lab.metal_api.spot_market.models import SpotMarketRequest
from lab.metal_api.state import Account


def document(account: Account, entry: SpotMarketRequest) -> Json:
    """A request. Its devices are a list called `devices`, as packngo has it; the description says `instances`."""
    shown: Json = {
        "id": entry.id,
        "href": f"{BASE}/spot-market-requests/{entry.id}",
        "devices_min": entry.devices_min,
        "devices_max": entry.devices_max,
        "max_bid_price": entry.max_bid_price,
        "project": link("projects", entry.project_id),
        "plan": link("plans", stable_id("plan", entry.plan)),
        "devices": [link("devices", device.id) for device in models.devices_of(account, entry)],
        "created_at": entry.created_at,
    }
    if entry.metro is not None:
        shown["metro"] = metro_document(METROS[entry.metro])
    if entry.end_at is not None:
        shown["end_at"] = entry.end_at
    return shown


class Responses(Operations):
    """One method per operation."""

    # Prices

    async def facility_prices(self, request: Request) -> Response:
        return self._prices(request, "facility", FACILITIES)

    async def metro_prices(self, request: Request) -> Response:
        return self._prices(request, "metro", METROS)

    def _prices(self, request: Request, name: str, every: Mapping[str, Facility] | Mapping[str, Metro]) -> Response:
        wanted = self._known(request, name)
        places = [place for code, place in every.items() if wanted in (None, code)]
        return JSONResponse({"spot_market_prices": prices.prices(self.account, places, self._plan(request))})

    def _known(self, request: Request, name: str) -> str | None:
        text = request.query_params.get(name)
        if not text:
            return None
        found = named(FACILITIES, text) if name == "facility" else named(METROS, text)
        if found is None:
            raise Unprocessable(f"{text} is not a valid {name}")
        return found.code

    def _plan(self, request: Request) -> str | None:
        text = request.query_params.get("plan")
        if text and text not in PLANS:
            raise Unprocessable(f"{text} is not a valid plan")
        return text or None

    # Requests

    async def list_of_project(self, request: Request) -> Response:
        """Not paged by the real API."""
        found = models.requests_of(self.account, self.find(request, Project).id)
        return self.listed(request, "spot_market_requests", found, lambda entry: self.document(request, entry))

    async def create(self, request: Request) -> Response:
        entry = models.create(self.account, self.find(request, Project).id, await body_of(request))
        for device in models.fill(self.account, entry):
            self.lab.provisioner.provision(device)
        return self.saved(request, self.document(request, entry), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(request, self.find(request, SpotMarketRequest)))

    async def delete(self, request: Request) -> Response:
        """packngo says in the body what the description has in the query."""
        entry, document = self.find(request, SpotMarketRequest), await body_of(request)
        force = flag(request.query_params, "force_termination") or bool(document.get("force_termination"))
        devices = models.devices_of(self.account, entry)
        if force and any(device.locked for device in devices):
            raise Unprocessable("Cannot delete a locked item")
        del self.account.table(SpotMarketRequest)[entry.id]
        for device in devices if force else []:
            self.lab.provisioner.deprovision(device)
        return self.saved(request, None, 204)

    def document(self, request: Request, entry: SpotMarketRequest) -> Json:
        """With `facilities` only where these are included: packngo needs a list there, the description has a link."""
        shown = document(self.account, entry)
        if "facilities" in View.of(request.query_params).include and entry.metro is None:
            shown["facilities"] = [facility_document(FACILITIES[code]) for code in entry.facilities]
        return shown

    # The lab's own

    async def set_price(self, request: Request) -> Response:
        """What the market would do."""
        made = prices.change(self.account, await body_of(request))
        models.outbid(self.account)
        self.lab.store.commit()
        shown = [{"facility": entry.facility, "plan": entry.plan, "price": entry.price} for entry in made]
        return JSONResponse({"spot_prices": shown}, 201)

    async def evict(self, request: Request) -> Response:
        """What Metal would do when it needs the machines: of a request, or one of them, after some `seconds`."""
        body = Body(await body_of(request))
        identity, seconds = body.text("id", required=True) or "", body.number("seconds", least=0)
        body.check()
        evicted = self._spot_devices(identity)
        for device in evicted:
            models.evict(self.account, device, seconds=models.NOTICE if seconds is None else seconds)
        self.lab.store.commit()
        return JSONResponse({"devices": [device.id for device in evicted]}, 202)

    def _spot_devices(self, identity: str) -> list[Device]:
        entry, device = self.account.table(SpotMarketRequest).get(identity), self.account.table(Device).get(identity)
        found = models.devices_of(self.account, entry) if entry else [device] if device and device.spot_instance else []
        if not found:
            raise Unprocessable(f"id: {identity} is neither a spot market request with devices nor a spot device")
        return [each for each in found if each.state != GONE]
