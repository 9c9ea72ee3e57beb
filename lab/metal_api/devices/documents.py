"""Devices as the API shows them, with every field that the official clients follow without looking first."""

from __future__ import annotations

from lab.metal_api.catalog.models import FACILITIES, METROS, OPERATING_SYSTEMS, stable_id
from lab.metal_api.catalog.responses import facility_document, metro_document, plan_document, system_document
from lab.metal_api.devices.models import Device
from lab.metal_api.events import models as events
from lab.metal_api.events.documents import document as event_document
from lab.metal_api.ips.documents import device_addresses
from lab.metal_api.listing import BASE, link
from lab.metal_api.organizations.models import creator
from lab.metal_api.ports import documents as ports
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.state import Account

SOS_HOST = "sos.{facility}.platformequinix.com"
_ACTIONS = {
    "active": ("power_off", "reboot", "reinstall", "rescue"),
    "inactive": ("power_on", "reinstall"),
}


def document(account: Account, device: Device) -> Json:
    """A device; plan, operating system, facility, metro and addresses in full, the rest as links."""
    provisioning = [event for event in events.of_device(account, device.id) if event.type.startswith("provisioning.")]
    shown: Json = {
        "id": device.id,
        "short_id": device.id[:8],
        "href": f"{BASE}/devices/{device.id}",
        "hostname": device.hostname,
        "description": device.description,
        "state": device.state,
        "created_at": device.created_at,
        "updated_at": device.updated_at,
        "created_by": creator(account),
        "user": "root",
        "tags": device.tags,
        "billing_cycle": device.billing_cycle,
        "bonding_mode": 5,
        "locked": device.locked,
        "network_frozen": device.network_frozen,
        "spot_instance": device.spot_instance,
        "spot_price_max": device.spot_price_max,
        "termination_time": device.termination_time,
        "customdata": device.customdata,
        "userdata": device.userdata,
        "ipxe_script_url": device.ipxe_script_url,
        "always_pxe": device.always_pxe,
        "iqn": iqn(device),
        "image_url": None,
        "switch_uuid": stable_id("switch", device.facility)[:8],
        "root_password": device.root_password,
        "sos": f"{device.id}@{SOS_HOST.format(facility=device.facility)}",
        "actions": [{"type": name, "name": name.replace("_", " ").title()} for name in _ACTIONS.get(device.state, ())],
        "plan": plan_document(device.hardware),
        "operating_system": system_document(OPERATING_SYSTEMS[device.operating_system]),
        "facility": facility_document(FACILITIES[device.facility]),
        "metro": metro_document(METROS[device.metro]),
        "project": link("projects", device.project_id),
        "project_lite": link("projects", device.project_id),
        "ssh_keys": [link("ssh-keys", key) for key in device.ssh_key_ids if key in account.table(SshKey)],
        "volumes": [],
        "ip_addresses": device_addresses(account, device),
        "network_ports": ports.documents(account, device),
        "provisioning_events": [event_document(event) for event in provisioning],
    }
    if device.hardware_reservation_id is not None:
        shown["hardware_reservation"] = link("hardware-reservations", device.hardware_reservation_id)
    if device.state == "provisioning":
        shown["provisioning_percentage"] = min(99.0, 20.0 * len(provisioning))
    return shown


def iqn(device: Device) -> str:
    """The iSCSI name Metal gives every device."""
    return f"iqn.{device.created_at[:7]}.net.packet:device.{device.id[:8]}"
