"""What lists of devices can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.datastructures import QueryParams

from lab.metal_api.catalog.models import FACILITIES, METROS, OPERATING_SYSTEMS, named
from lab.metal_api.devices.models import Device
from lab.metal_api.devices.network import interfaces
from lab.metal_api.listing import flag, searched, values


def filtered(devices: Iterable[Device], query: QueryParams) -> list[Device]:
    """The devices that fit: `tag` and `categories` may be repeated or comma-separated, the rest are single."""
    tests: list[Callable[[Device], bool]] = [lambda device, tag=tag: tag in device.tags for tag in values(query, "tag")]
    categories = set(values(query, "categories"))
    if categories:
        tests.append(lambda device: bool(categories & set(device.hardware.categories)))
    exact: dict[str, Callable[[Device], str]] = {
        "state": lambda device: device.state,
        "plan": lambda device: device.plan,
        "type": _type,
    }
    for name, value in exact.items():
        if query.get(name):
            tests.append(lambda device, value=value, wanted=query[name]: value(device) == wanted)
    if query.get("hostname"):
        tests.append(lambda device: query["hostname"] in device.hostname)
    if query.get("facility"):
        facility = named(FACILITIES, query["facility"])
        tests.append(lambda device: facility is not None and device.facility == facility.code)
    if query.get("metro"):
        metro = named(METROS, query["metro"])
        tests.append(lambda device: metro is not None and device.metro == metro.code)
    if query.get("mac_address"):
        mac = query["mac_address"].lower()
        tests.append(lambda device: mac in interfaces(device).values())
    reserved, ending = flag(query, "reserved"), flag(query, "has_termination_time")
    if reserved is not None:
        tests.append(lambda device: (device.hardware_reservation_id is not None) == reserved)
    if ending is not None:
        tests.append(lambda device: (device.termination_time is not None) == ending)
    found = [device for device in devices if all(test(device) for test in tests)]
    return searched(found, query.get("search"), _texts)


def _type(device: Device) -> str:
    if device.spot_instance:
        return "spot"
    return "reserved" if device.hardware_reservation_id else "ondemand"


def _texts(device: Device) -> list[str | None]:
    """What `search` looks into."""
    system, facility = OPERATING_SYSTEMS[device.operating_system], FACILITIES[device.facility]
    reservation = device.hardware_reservation_id
    return [
        device.hostname,
        device.description,
        device.id,
        reservation[:8] if reservation else None,
        *device.tags,
        device.plan,
        facility.code,
        facility.name,
        system.name,
        system.slug,
        device.state,
        *device.own_addresses,
    ]
