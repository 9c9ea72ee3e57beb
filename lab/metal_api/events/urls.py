"""Routes of the events."""

from __future__ import annotations

from lab.metal_api.events.responses import Responses
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    events = Responses(lab)
    return [
        ("/devices/{id}/events", {"GET": events.list_of_device}),
    ]
