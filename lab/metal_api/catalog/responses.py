"""The catalogue as the API shows it, and its operations. Its documents never change: they are made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import body_of
from lab.metal_api.catalog import capacity
from lab.metal_api.catalog.models import (
    FACILITIES,
    METROS,
    OPERATING_SYSTEMS,
    PLANS,
    Facility,
    Metro,
    OperatingSystem,
    Plan,
    named,
)
from lab.metal_api.exceptions import NotFound
from lab.metal_api.listing import BASE, link, values
from lab.metal_api.operations import Operations
from lab.metal_api.records import Json

T = TypeVar("T")


@cache
def metro_document(metro: Metro) -> Json:
    """A metro."""
    return {
        "id": metro.id,
        "href": f"{BASE}/locations/metros/{metro.id}",
        "name": metro.name,
        "code": metro.code,
        "country": metro.country,
    }


@cache
def facility_document(facility: Facility) -> Json:
    """A facility."""
    metro = METROS[facility.metro]
    return {
        "id": facility.id,
        "href": f"{BASE}/facilities/{facility.id}",
        "name": facility.name,
        "code": facility.code,
        "features": ["baremetal", "layer_2", "backend_transfer", "global_ipv4", "ibx"],
        "ip_ranges": ["198.51.100.0/24"],
        "metro": metro_document(metro),
        "address": {"address": "1 Example Way", "city": metro.name, "zip_code": "00000", "country": metro.country},
    }


@cache
def plan_document(plan: Plan) -> Json:
    """A plan; the lab's own sizes do not appear. A price stands beside a place where it is not the usual one."""

    def place(reference: Json, metro: str) -> Json:
        price = plan.price_in(metro)
        return reference if price == plan.price else {**reference, "price": {"hour": price}}

    return {
        "id": plan.id,
        "href": f"{BASE}/plans/{plan.id}",
        "slug": plan.slug,
        "name": plan.slug,
        "class": plan.slug,
        "description": f"{plan.slug} (emulated)",
        "line": "baremetal",
        "type": plan.kind,
        "legacy": False,
        "categories": list(plan.categories),
        "deployment_types": list(plan.deployment_types),
        "available_in": [
            place(link("facilities", entry.id), entry.metro)
            for entry in FACILITIES.values()
            if plan.offered_in(entry.metro)
        ],
        "available_in_metros": [
            place(link("locations/metros", entry.id), entry.code)
            for entry in METROS.values()
            if plan.offered_in(entry.code)
        ],
        "pricing": {"hour": plan.price},
        "specs": {
            "cpus": [{"count": 1, "type": plan.cpu}],
            "memory": {"total": plan.memory},
            "drives": [
                {"count": 1, "size": drive.size, "type": drive.kind, "category": drive.category}
                for drive in plan.drives
            ],
            "nics": [{"count": 2, "type": "10Gbps"}],
            "features": {"raid": False, "txt": True, "uefi": True},
        },
    }


@cache
def system_document(system: OperatingSystem) -> Json:
    """An operating system."""
    return {
        "id": system.id,
        "href": f"{BASE}/operating-systems/{system.id}",
        "slug": system.slug,
        "name": system.name,
        "distro": system.distro,
        "distro_label": system.distro.title(),
        "version": system.version,
        "preinstallable": False,
        "pricing": {},
        "licensed": False,
        "provisionable_on": system.plans,
        "default_operating_system": True,
    }


def documents() -> dict[str, Callable[[str], Json]]:
    """What is behind links into the catalogue."""
    return {
        "facilities": lambda identity: facility_document(_there(named(FACILITIES, identity))),
        "locations/metros": lambda identity: metro_document(_there(named(METROS, identity))),
        "plans": lambda identity: plan_document(_there(named(PLANS, identity))),
    }


def _there(entry: T | None) -> T:
    if entry is None:
        raise NotFound
    return entry


class Responses(Operations):
    """One method per operation."""

    async def facilities(self, request: Request) -> Response:
        return self.listed(request, "facilities", list(FACILITIES.values()), facility_document)

    async def metros(self, request: Request) -> Response:
        return self.listed(request, "metros", list(METROS.values()), metro_document)

    async def plans(self, request: Request) -> Response:
        query = request.query_params
        categories, kind, slug = values(query, "categories"), query.get("type"), query.get("slug")
        found = [
            plan
            for plan in PLANS.values()
            if (not categories or set(categories) & set(plan.categories))
            and kind in (None, plan.kind)
            and slug in (None, plan.slug)
        ]
        return self.listed(request, "plans", found, plan_document)

    async def operating_systems(self, request: Request) -> Response:
        return self.listed(request, "operating_systems", list(OPERATING_SYSTEMS.values()), system_document)

    async def check_capacity(self, request: Request) -> Response:
        return JSONResponse({"servers": capacity.check(self.account, await body_of(request), "facility")})

    async def check_metro_capacity(self, request: Request) -> Response:
        return JSONResponse({"servers": capacity.check(self.account, await body_of(request), "metro")})
