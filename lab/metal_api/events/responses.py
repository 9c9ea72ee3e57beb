"""The API's operations on events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.devices.models import Device
from lab.metal_api.events import models
from lab.metal_api.events.documents import document
from lab.metal_api.operations import Operations


class Responses(Operations):
    """One method per operation; lists have the latest first."""

    async def list_of_device(self, request: Request) -> Response:
        events = models.of_device(self.account, self.find(request, Device).id)
        return self.paged(request, "events", events[::-1], document)
