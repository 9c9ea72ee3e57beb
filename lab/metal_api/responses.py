"""Records as the API's JSON: full objects, links, include and exclude, pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from lab.metal_api.catalog import FACILITIES, METROS, OPERATING_SYSTEMS, PLANS, stable_id
from lab.metal_api.elastic import assignments_of
from lab.metal_api.models import Device, Event, Json, Project, SshKey
from lab.metal_api.network_responses import BASE, address_document, assignment_document, ports
from lab.metal_api.state import Account

SOS_HOST = "sos.{facility}.platformequinix.com"
PER_PAGE, MAX_PER_PAGE = 10, 1000
_ACTIONS = {
    "active": ("power_off", "reboot", "reinstall", "rescue"),
    "inactive": ("power_on", "reinstall"),
}


@dataclass(frozen=True, kw_only=True)
class View:
    """Which references a client wants expanded or folded (`include`, `exclude`), first level by name."""

    include: frozenset[str] = field(default_factory=frozenset[str])
    exclude: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def of(cls, query: Any) -> View:
        """From the query parameters; dotted names count for their first part."""

        def names(key: str) -> frozenset[str]:
            parts = ",".join(query.getlist(key)).split(",")
            return frozenset(part.strip().split(".")[0] for part in parts if part.strip())

        return cls(include=names("include"), exclude=names("exclude"))

    def link(self, name: str, href: str, full: Callable[[], Json]) -> Json:
        """A reference that is a link unless it is included."""
        return full() if name in self.include else {"href": href}

    def whole(self, name: str, document: Json) -> Json:
        """A reference that is expanded unless it is excluded."""
        return {"href": document["href"]} if name in self.exclude else document


_PLAIN = View()


def project_document(account: Account, project: Project, view: View = _PLAIN) -> Json:
    """A project; devices and keys are links."""
    href = f"{BASE}/projects/{project.id}"
    organization = account.identity.organization_id
    return {
        "id": project.id,
        "href": href,
        "url": href,
        "name": project.name,
        "type": "default",
        "created_at": project.created_at,
        "updated_at": project.updated_at,
        "backend_transfer_enabled": project.backend_transfer_enabled,
        "customdata": project.customdata,
        "tags": project.tags,
        "max_devices": {},
        "network_status": {},
        "organization": view.link(
            "organization", f"{BASE}/organizations/{organization}", lambda: organization_document(account)
        ),
        "members": [view.link("members", f"{BASE}/users/{user_id(account)}", lambda: user_document(account))],
        "memberships": [],
        "invitations": [],
        "payment_method": {"href": f"{BASE}/payment-methods/{stable_id('payment-method', 'lab')}"},
        "ssh_keys": [
            view.link("ssh_keys", f"{BASE}/ssh-keys/{key.id}", lambda key=key: key_document(account, key))
            for key in account.project_keys(project.id)
        ],
        "devices": [
            view.link("devices", f"{BASE}/devices/{device.id}", lambda device=device: device_document(account, device))
            for device in account.project_devices(project.id)
        ],
        "volumes": [],
    }


def organization_document(account: Account) -> Json:
    """The one organization."""
    identity = account.identity.organization_id
    return {
        "id": identity,
        "href": f"{BASE}/organizations/{identity}",
        "name": "Lab",
        "description": "",
        "personal": False,
        "projects": [{"href": f"{BASE}/projects/{project}"} for project in account.projects],
        "members": [{"href": f"{BASE}/users/{user_id(account)}"}],
        "memberships": [],
    }


def user_id(account: Account) -> str:
    """The id of the token's owner."""
    return stable_id("user", account.identity.organization_id)


def user_document(account: Account) -> Json:
    """The one user."""
    identity = user_id(account)
    return {
        "id": identity,
        "short_id": identity[:8],
        "href": f"{BASE}/users/{identity}",
        "first_name": "Lab",
        "last_name": "User",
        "full_name": "Lab User",
        "email": "lab@facility.test",
        "customdata": {},
        "default_organization_id": account.identity.organization_id,
        "default_project_id": account.identity.project_id,
        "timezone": "UTC",
        "two_factor_auth": "",
    }


def key_document(account: Account, key: SshKey) -> Json:
    """An SSH key; packngo reads its owner from `owner`, the API description calls it `entity`."""
    owner = f"/projects/{key.project_id}" if key.project_id else f"/users/{user_id(account)}"
    return {
        "id": key.id,
        "href": f"{BASE}/ssh-keys/{key.id}",
        "label": key.label,
        "key": key.key,
        "fingerprint": ":".join(key.fingerprint[index : index + 2] for index in range(0, 32, 2)),
        "created_at": key.created_at,
        "updated_at": key.updated_at,
        "owner": {"href": BASE + owner},
        "entity": {"href": BASE + owner},
        "tags": key.tags,
    }


def event_document(device: Device, event: Event) -> Json:
    """An event of a device."""
    return {
        "id": event.id,
        "href": f"{BASE}/events/{event.id}",
        "type": event.type,
        "body": event.body,
        "state": event.state,
        "created_at": event.created_at,
        "interpolated": event.body,
        "ip": None,
        "relationships": [{"href": f"{BASE}/devices/{device.id}"}, {"href": f"{BASE}/projects/{device.project_id}"}],
    }


def device_document(account: Account, device: Device, view: View = _PLAIN) -> Json:
    """A device, with every field the official clients follow without looking first."""
    project = account.project(device.project_id)
    facility = FACILITIES[device.facility]
    provisioning = [event for event in device.events if event.type.startswith("provisioning.")]
    document: Json = {
        "id": device.id,
        "short_id": device.id[:8],
        "href": f"{BASE}/devices/{device.id}",
        "hostname": device.hostname,
        "description": device.description,
        "state": device.state,
        "created_at": device.created_at,
        "updated_at": device.updated_at,
        "created_by": user_document(account),
        "user": "root",
        "tags": device.tags,
        "billing_cycle": device.billing_cycle,
        "bonding_mode": 5,
        "locked": device.locked,
        "network_frozen": device.network_frozen,
        "spot_instance": False,
        "spot_price_max": None,
        "termination_time": None,
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
        "plan": view.whole("plan", PLANS[device.plan].document()),
        "operating_system": view.whole("operating_system", OPERATING_SYSTEMS[device.operating_system].document()),
        "facility": view.whole("facility", facility.document()),
        "metro": view.whole("metro", METROS[facility.metro].document()),
        "project": view.link("project", f"{BASE}/projects/{project.id}", lambda: project_document(account, project)),
        "project_lite": {"href": f"{BASE}/projects/{project.id}"},
        "ssh_keys": [
            view.link(
                "ssh_keys", f"{BASE}/ssh-keys/{identity}", lambda i=identity: key_document(account, account.key(i))
            )
            for identity in device.ssh_key_ids
            if identity in account.keys
        ],
        "volumes": [],
        "ip_addresses": device_addresses(account, device),
        "network_ports": ports(device),
        "provisioning_events": [event_document(device, event) for event in provisioning],
    }
    if device.state == "provisioning":
        document["provisioning_percentage"] = min(99.0, 20.0 * len(provisioning))
    return document


def device_addresses(account: Account, device: Device) -> list[Json]:
    """Its own addresses, then the elastic ones that are assigned to it."""
    return [
        *(address_document(device, index) for index in range(len(device.addresses))),
        *(assignment_document(account, entry) for entry in assignments_of(account, device)),
    ]


def iqn(device: Device) -> str:
    """The iSCSI name Metal gives every device."""
    return f"iqn.{device.created_at[:7]}.net.packet:device.{device.id[:8]}"


def page(
    path: str,
    query: Any,
    name: str,
    records: Sequence[Any],
    render: Callable[[Any], Json],
    *,
    per_page: int = PER_PAGE,
) -> Json:
    """One page of a list; only what is on the page is rendered.

    The links of `meta` lack the /metal/v1 of all other links: packngo puts its base address before them.
    """
    per_page = max(1, min(_number(query, "per_page", per_page), MAX_PER_PAGE))
    last = max(1, -(-len(records) // per_page))
    current = max(1, _number(query, "page", 1))
    others = [(key, value) for key, value in query.multi_items() if key != "page"]

    def link(number: int) -> Json:
        return {"href": f"{path.removeprefix(BASE)}?{urlencode([*others, ('page', number)])}"}

    start = (current - 1) * per_page
    return {
        name: [render(record) for record in records[start : start + per_page]],
        "meta": {
            "first": link(1),
            "previous": link(current - 1) if current > 1 else None,
            "self": link(current),
            "next": link(current + 1) if current < last else None,
            "last": link(last),
            "current_page": current,
            "last_page": last,
            "total": len(records),
        },
    }


def _number(query: Any, key: str, default: int) -> int:
    try:
        return int(query.get(key, default))
    except ValueError:
        return default
