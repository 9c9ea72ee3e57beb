"""Routes of the catalogue."""

from __future__ import annotations

from lab.metal_api.catalog.responses import Responses, documents
from lab.metal_api.operations import Endpoint, Lab, Urls
from lab.metal_api.organizations.models import Organization
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Record


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    catalog = Responses(lab)
    lab.documents.update(documents())

    def of(kind: type[Record], operation: Endpoint) -> dict[str, Endpoint]:
        return {"GET": catalog.beneath(kind, operation)}

    return [
        ("/facilities", {"GET": catalog.facilities}),
        ("/locations/metros", {"GET": catalog.metros}),
        ("/locations/metros/{id}", {"GET": catalog.metro}),
        ("/plans", {"GET": catalog.plans}),
        ("/operating-systems", {"GET": catalog.operating_systems}),
        ("/operating-system-versions", {"GET": catalog.operating_systems}),
        ("/capacity", {"GET": catalog.capacity, "POST": catalog.check_capacity}),
        ("/capacity/metros", {"GET": catalog.metro_capacity, "POST": catalog.check_metro_capacity}),
        ("/projects/{id}/facilities", of(Project, catalog.facilities)),
        ("/projects/{id}/plans", of(Project, catalog.plans)),
        ("/organizations/{id}/facilities", of(Organization, catalog.facilities)),
        ("/organizations/{id}/plans", of(Organization, catalog.plans)),
        ("/organizations/{id}/operating-systems", of(Organization, catalog.operating_systems)),
        ("/organizations/{id}/capacity", of(Organization, catalog.capacity)),
        ("/organizations/{id}/capacity/metros", of(Organization, catalog.metro_capacity)),
    ]
