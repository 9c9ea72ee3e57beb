"""Devices and their events as the API shows them, and its operations on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from lab.metal_api import ordering, vlans
from lab.metal_api.access import user_id
from lab.metal_api.body import Input
from lab.metal_api.catalog import FACILITIES, METROS, OPERATING_SYSTEMS
from lab.metal_api.devices import Device, Event, devices_of, events_of
from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.hardware_reservations import switch
from lab.metal_api.ips import own_document
from lab.metal_api.listing import BASE, Listing, head, link, values
from lab.metal_api.offers import facility_document, metro_document, plan_document, system_document
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys import SshKey
from lab.metal_api.state import Account

_ACTIONS = {
    "active": ("power_off", "reboot", "reinstall", "rescue"),
    "inactive": ("power_on", "reinstall"),
}


@shows("devices", Device)
def document(account: Account, device: Device) -> Json:
    """A device, with every field that the official clients follow without looking first.

    Plan, operating system, facility, metro and addresses are shown in full, the rest as links.
    """
    provisioning = [event for event in events_of(account, device) if event.type.startswith("provisioning.")]
    user = user_id(account)
    shown: Json = {
        "short_id": device.id[:8],
        "hostname": device.hostname,
        "description": device.description,
        "state": device.state,
        "created_by": {
            "id": user,
            "short_id": user[:8],
            "href": f"{BASE}/users/{user}",
            "first_name": "Lab",
            "last_name": "User",
            "full_name": "Lab User",
            "email": "lab@facility.test",
            "created_at": device.created_at,
            "updated_at": device.created_at,
        },
        "user": "root",
        "tags": device.tags,
        "billing_cycle": device.billing_cycle,
        "bonding_mode": 5,
        "locked": False,
        "network_frozen": False,
        "spot_instance": device.spot_price_max is not None,
        "spot_price_max": device.spot_price_max,
        "termination_time": device.termination_time,
        "customdata": device.customdata,
        "userdata": device.userdata,
        "ipxe_script_url": device.ipxe_script_url,
        "always_pxe": device.always_pxe,
        "iqn": device.iqn,
        "image_url": None,
        "switch_uuid": switch(device.facility),
        "root_password": device.root_password,
        "sos": f"{device.id}@sos.{device.facility}.platformequinix.com",
        "actions": [{"type": name, "name": name.replace("_", " ").title()} for name in _ACTIONS.get(device.state, ())],
        "plan": plan_document(device.hardware),
        "operating_system": system_document(OPERATING_SYSTEMS[device.operating_system]),
        "facility": facility_document(FACILITIES[device.facility]),
        "metro": metro_document(METROS[device.metro]),
        "project": link("projects", device.project_id),
        "project_lite": link("projects", device.project_id),
        "ssh_keys": [link("ssh-keys", key) for key in device.ssh_key_ids if key in account.table(SshKey)],
        "volumes": [],
        "ip_addresses": [own_document(device, index) for index in range(len(device.addresses))],
        "network_ports": vlans.ports_of(account, device),
        "provisioning_events": [_event_document(event) for event in provisioning],
    }
    if device.hardware_reservation_id is not None:
        shown["hardware_reservation"] = link("hardware-reservations", device.hardware_reservation_id)
    if device.state == "provisioning":
        shown["provisioning_percentage"] = min(99.0, 20.0 * len(provisioning))
    return shown


def _event_document(event: Event) -> Json:
    return head("events", event) | {
        "type": event.type,
        "body": event.body,
        "state": event.state,
        "interpolated": event.body,
        "relationships": [link("devices", event.device_id), link("projects", event.project_id)],
    }


@operation("GET /projects/{id}/devices")
def list_devices(call: Call) -> Listing:
    """By `tag`, all of them if there are several."""
    tags = set(values(call.query, "tag"))
    found = [device for device in devices_of(call.account, call.project_id) if tags <= set(device.tags)]
    filters = ("tag", "tag[]")
    return Listing(name="devices", entries=found, shown=lambda device: document(call.account, device), filters=filters)


@operation("POST /projects/{id}/devices", status=201)
def create(call: Call) -> Json:
    device = ordering.order(call.account, call.project_id, call.body)
    call.account.table(Device).add(device)
    shown = document(call.account, device)
    call.lab.provisioner.provision(device)
    return shown


@operation("PUT /devices/{id}", "PATCH /devices/{id}")
def update(call: Call) -> Json:
    device = call.find(Device)
    ordering.update(call.account, device, call.body)
    return document(call.account, device)


@operation("DELETE /devices/{id}")
def delete(call: Call) -> None:
    call.lab.provisioner.deprovision(call.find(Device))


class _Action(Input):
    type: Literal["power_on", "power_off", "reboot", "reinstall", "rescue"]
    preserve_data: bool = False
    deprovision_fast: bool = False
    force_delete: bool = False
    operating_system: str | None = None
    ipxe_script_url: str | None = None


@operation("POST /devices/{id}/actions", status=202)
def act(call: Call) -> None:
    device, provisioner = call.find(Device), call.lab.provisioner
    asked = _Action.of({"type": call.query.get("type"), **call.body})
    actions: dict[str, Callable[[Device], None]] = {
        "power_on": provisioner.power_on,
        "power_off": provisioner.power_off,
        "reboot": provisioner.reboot,
        "reinstall": partial(provisioner.reinstall, preserve_data=asked.preserve_data, fast=asked.deprovision_fast),
    }
    if asked.type == "rescue":
        raise NotImplementedInLab("device action rescue")
    if asked.type == "reinstall" and (asked.operating_system or asked.ipxe_script_url):
        raise NotImplementedInLab("device action reinstall with another system")
    actions[asked.type](device)


@operation("GET /devices/{id}/events")
def list_events(call: Call) -> Listing:
    """The latest first."""
    return Listing(name="events", entries=events_of(call.account, call.find(Device))[::-1], shown=_event_document)
