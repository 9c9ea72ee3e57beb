"""The catalogue as the API shows it. Its documents never change: they are made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from lab.metal_api.catalog import (
    FACILITIES,
    METROS,
    OPERATING_SYSTEMS,
    PLANS,
    Entry,
    Facility,
    Metro,
    OperatingSystem,
    Plan,
    named,
)
from lab.metal_api.exceptions import NotFound
from lab.metal_api.listing import BASE, Listing, link
from lab.metal_api.operations import links, operation
from lab.metal_api.records import Json


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

    facilities = [entry for entry in FACILITIES.values() if plan.offered_in(entry.metro)]
    metros = [entry for entry in METROS.values() if plan.offered_in(entry.code)]
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
        "available_in": [place(link("facilities", entry.id), entry.metro) for entry in facilities],
        "available_in_metros": [place(link("locations/metros", entry.id), entry.code) for entry in metros],
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


def _offer(collection: str, key: str, entries: Mapping[str, Entry], document: Callable[[Entry], Json]) -> None:
    """Register a list of the catalogue, and what is behind links into it."""

    def show(_: Any, identity: str) -> Json:
        found = named(entries, identity)
        if found is None:
            raise NotFound
        return document(found)

    links(collection, show)
    operation(f"GET /{collection}")(
        lambda _: Listing(name=key, entries=[*entries.values()], shown=document, per_page=None)
    )


_offer("facilities", "facilities", FACILITIES, facility_document)
_offer("locations/metros", "metros", METROS, metro_document)
_offer("plans", "plans", PLANS, plan_document)
_offer("operating-systems", "operating_systems", OPERATING_SYSTEMS, system_document)
