"""Pure functions between the API's spot market requests and the resource's properties."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lab.plugins.equinix_metal.documents import part
from lab.plugins.equinix_metal.network_documents import reference
from lab.plugins.values import Json

_INSTANCE = {
    "alwaysPxe": "always_pxe",
    "customdata": "customdata",
    "description": "description",
    "features": "features",
    "ipxeScriptUrl": "ipxe_script_url",
    "locked": "locked",
    "projectSshKeys": "project_ssh_keys",
    "userSshKeys": "user_ssh_keys",
}


def instance_body(parameters: Mapping[str, Json]) -> dict[str, Json]:
    """What its devices are ordered with; empty values are left out, as the official plug-in does."""
    return {
        "hostname": parameters["hostname"],
        "plan": parameters["plan"],
        "operating_system": parameters["operatingSystem"],
        "billing_cycle": parameters["billingCycle"],
        "userdata": parameters.get("userdata") or "",
        "tags": parameters.get("tags") or [],
        **{theirs: parameters[ours] for ours, theirs in _INSTANCE.items() if parameters.get(ours)},
    }


def whole_cents(price: float) -> float:
    """A price as officially asked for: in whole cents, halves upwards."""
    return math.floor(price * 100 + 0.5) / 100


def spot_request_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a request; its parameters are not among what the API shows."""
    return {
        "id": document["id"],
        "projectId": reference(document, "project"),
        "metro": part(document, "metro", "code") or "",
        "devicesMin": document.get("devices_min") or 0,
        "devicesMax": document.get("devices_max") or 0,
        "maxBidPrice": document.get("max_bid_price") or 0,
        "facilities": [facility.get("code") or "" for facility in document.get("facilities") or []],
    }


def spot_devices(document: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The devices that a request has brought so far."""
    return document.get("devices") or []


def spot_hostnames(document: Mapping[str, Json]) -> list[str]:
    """The host names of its devices, as far as it tells."""
    return [str(device["hostname"]) for device in spot_devices(document) if device.get("hostname")]
