"""The API's operations on events."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.devices.models import Device
from lab.metal_api.events import models
from lab.metal_api.events.documents import document
from lab.metal_api.events.models import Event
from lab.metal_api.operations import Operations
from lab.metal_api.organizations.models import Organization
from lab.metal_api.projects.models import Project


class Responses(Operations):
    """One method per operation; lists have the latest first."""

    async def list_all(self, request: Request) -> Response:
        events = self.account.table(Event).values()
        return self._page(request, [event for event in events if self.caller(request).sees(event.project_id)])

    async def list_of_organization(self, request: Request) -> Response:
        """Of the organization and of its projects."""
        identity = self.find(request, Organization).id
        projects = {project.id for project in self.account.table(Project).where("organization_id", identity)}
        events = self.account.table(Event).values()
        return self._page(
            request,
            [
                event
                for event in events
                if event.project_id in projects or (not event.project_id and f"organizations/{identity}" in event.about)
            ],
        )

    async def list_of_project(self, request: Request) -> Response:
        return self._page(request, models.of_project(self.account, self.find(request, Project).id))

    async def list_of_device(self, request: Request) -> Response:
        return self._page(request, models.of_device(self.account, self.find(request, Device).id))

    async def show(self, request: Request) -> Response:
        return self.shown(request, document(self.find(request, Event)))

    def _page(self, request: Request, events: Iterable[Event]) -> Response:
        return self.paged(request, "events", list(events)[::-1], document)
