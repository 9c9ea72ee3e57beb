"""Documents of the Metal API: requests and answers. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from metal_ipi.provider.platforms.contract import Event, Machine
from metal_ipi.provider.resources.ephemeral_machine import EphemeralMachineArgs

_LABEL = re.compile(r"metal-ipi:(?P<stack>[^:\s]+):(?P<cluster>[^:\s]+)(?::\S*)?(?: run=(?P<run>\S+))?(?=\s|$)")
_TAG = re.compile(r"metal-ipi:(?P<key>stack|cluster|name|role|run)=(?P<value>.+)")


def order(spec: EphemeralMachineArgs) -> dict[str, Any]:
    """The request body of an order."""
    body: dict[str, Any] = {
        "hostname": spec.hostname,
        "plan": spec.plan,
        "metro": spec.metro,
        "facility": list(spec.facilities) or None,
        "operating_system": spec.operating_system,
        "ipxe_script_url": spec.ipxe_script_url,
        "always_pxe": spec.always_pxe,
        "userdata": spec.user_data,
        "tags": list(spec.tags),
        "billing_cycle": "hourly",
        # If it is given, even empty, keys of the project's other users are not installed on the machine.
        "project_ssh_keys": list(spec.project_ssh_key_ids),
        "hardware_reservation_id": spec.hardware_reservation_id,
        "termination_time": spec.termination_time,
        "customdata": spec.custom_data,
        "ip_addresses": _addresses(spec.public_subnet),
    }
    return {key: value for key, value in body.items() if value is not None}


def _addresses(public_subnet: int | None) -> list[dict[str, Any]] | None:
    """A machine's IPv4 subnets, if its public subnet has another size. None: Metal's default, which adds an IPv6
    address."""
    if public_subnet is None:
        return None
    return [
        {"address_family": 4, "public": True, "cidr": public_subnet},
        {"address_family": 4, "public": False},
    ]


def id_of(item: Mapping[str, Any] | None) -> str:
    """The id of an object that the API shows in full or as a link; empty if there is none."""
    item = item or {}
    return str(item.get("id") or str(item.get("href", "")).rpartition("/")[2])


def marks(tags: Iterable[Any] = (), *labels: Any) -> dict[str, str]:
    """Our marks in tags, or else in the first label that has some. Empty: it is not ours."""
    found = {match["key"]: match["value"] for tag in tags if (match := _TAG.fullmatch(str(tag)))}
    if found:
        return found
    for label in labels:
        if isinstance(label, str) and (match := _LABEL.match(label)):
            return {key: value for key, value in match.groupdict().items() if value is not None}
    return {}


def marks_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Our marks in an object's tags, description or label."""
    return marks(item.get("tags") or (), item.get("description"), item.get("label"))


def machine_of(device: dict[str, Any]) -> Machine:
    """A device as a `Machine`."""
    addresses: list[dict[str, Any]] = device.get("ip_addresses") or []

    def address(family: int, *, public: bool) -> str | None:
        fits = [a for a in addresses if a.get("address_family") == family and bool(a.get("public")) == public]
        managed = [a for a in fits if a.get("management", True)] or fits
        return str(managed[0]["address"]) if managed else None

    facility = (device.get("facility") or {}).get("code", "")
    return Machine(
        id=str(device["id"]),
        hostname=str(device.get("hostname", "")),
        state=str(device.get("state", "")),
        tags=tuple(device.get("tags") or ()),
        public_ipv4=address(4, public=True),
        private_ipv4=address(4, public=False),
        public_ipv6=address(6, public=True),
        # The API calls it a host name, but gives `<id>@<host>`.
        console=str(device.get("sos") or f"sos.{facility}.platformequinix.com").rpartition("@")[2],
        progress=device.get("provisioning_percentage"),
        bond=next((str(port["id"]) for port in device.get("network_ports") or [] if port.get("name") == "bond0"), None),
    )


def event_of(event: dict[str, Any]) -> Event:
    """An event of a device."""
    text = event.get("interpolated") or event.get("body") or ""
    return Event(type=str(event.get("type", "")), text=str(text), state=str(event.get("state") or ""))
