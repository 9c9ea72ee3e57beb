"""Routes of the catalogue."""

from __future__ import annotations

from lab.metal_api.catalog.responses import Responses, documents
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    catalog = Responses(lab)
    lab.documents.update(documents())
    return [
        ("/facilities", {"GET": catalog.facilities}),
        ("/locations/metros", {"GET": catalog.metros}),
        ("/plans", {"GET": catalog.plans}),
        ("/operating-systems", {"GET": catalog.operating_systems}),
        ("/capacity", {"POST": catalog.check_capacity}),
        ("/capacity/metros", {"POST": catalog.check_metro_capacity}),
    ]
