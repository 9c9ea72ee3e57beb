"""Hardware reservations as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import body_of
from lab.metal_api.catalog.models import FACILITIES, PLANS
from lab.metal_api.catalog.responses import facility_document, plan_document
from lab.metal_api.hardware_reservations import models
from lab.metal_api.hardware_reservations.models import HardwareReservation
from lab.metal_api.listing import BASE, link, searched
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.state import Account


def document(account: Account, reservation: HardwareReservation) -> Json:
    """A reservation; one without a device, an end or a price of its own does not mention these."""
    device = models.device_on(account, reservation)
    shown: Json = {
        "id": reservation.id,
        "short_id": reservation.id[:8],
        "href": f"{BASE}/hardware-reservations/{reservation.id}",
        "project": link("projects", reservation.project_id),
        "plan": plan_document(PLANS[reservation.plan]),
        "facility": facility_document(FACILITIES[reservation.facility]),
        "provisionable": models.is_provisionable(account, reservation),
        "spare": reservation.spare,
        "need_of_service": reservation.need_of_service,
        "switch_uuid": reservation.switch,
        "created_at": reservation.created_at,
    }
    optional = {
        "device": link("devices", device.id) if device else None,
        "custom_rate": reservation.custom_rate,
        "termination_time": reservation.termination_time,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        query = request.query_params
        found = models.reservations_of(self.account, self.find(request, Project).id)
        if query.get("state"):
            found = [entry for entry in found if models.state_of(entry) == query["state"]]
        if query.get("provisionable") == "only":
            found = [entry for entry in found if models.is_provisionable(self.account, entry)]
        found = searched(found, query.get("query"), self._words)
        return self.paged(request, "hardware_reservations", found, self.document)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self.find(request, HardwareReservation)))

    async def sell(self, request: Request) -> Response:
        """The lab's own: what sales would make."""
        document = await body_of(request)
        project = self.account.table(Project).find(str(document.get("project_id", self.account.identity.project_id)))
        made = models.create(self.account, project.id, document)
        self.lab.store.commit()
        return JSONResponse({"hardware_reservations": [self.document(entry) for entry in made]}, 201)

    async def end(self, request: Request) -> Response:
        """The lab's own: the contract is over."""
        models.remove(self.account, self.find(request, HardwareReservation))
        return self.saved(request, None, 204)

    def document(self, reservation: HardwareReservation) -> Json:
        return document(self.account, reservation)

    def _words(self, reservation: HardwareReservation) -> list[str]:
        device = models.device_on(self.account, reservation)
        project = self.account.table(Project)[reservation.project_id]
        names = [reservation.facility, reservation.plan, project.name, reservation.id[:8]]
        return [*names, device.hostname] if device else names
