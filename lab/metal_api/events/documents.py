"""Events as the API shows them."""

from __future__ import annotations

from lab.metal_api.events.models import Event
from lab.metal_api.listing import BASE, link
from lab.metal_api.records import Json


def document(event: Event) -> Json:
    """An event."""
    return {
        "id": event.id,
        "href": f"{BASE}/events/{event.id}",
        "type": event.type,
        "body": event.body,
        "state": event.state,
        "created_at": event.created_at,
        "interpolated": event.body,
        "relationships": [link("devices", event.device_id), link("projects", event.project_id)],
    }
