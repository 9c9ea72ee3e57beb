"""Organizations and projects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator

from lab.metal_api.access import Organization, Project, user_id
from lab.metal_api.addresses import Reservation
from lab.metal_api.body import Input, Mapping, NotBlank, problem
from lab.metal_api.catalog import stable_id
from lab.metal_api.devices import Device, Event, devices_of
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.gateways import Gateway, hasten
from lab.metal_api.hardware_reservations import HardwareReservation
from lab.metal_api.listing import BASE, Listing, link
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json, Record
from lab.metal_api.routing import BgpConfig, config_of
from lab.metal_api.spot_market import SpotMarketRequest
from lab.metal_api.ssh_keys import SshKey, keys_of
from lab.metal_api.state import Account
from lab.metal_api.vlans import VirtualNetwork

MAX_NAME = 80
_IN_USE: tuple[tuple[type[Record], str], ...] = (
    (Device, "active devices. Please delete the devices first."),
    (Gateway, "metal gateways. Please delete the gateways first."),
    (Reservation, "IP reservations. Please delete the reservations first."),
    (VirtualNetwork, "virtual networks. Please delete the virtual networks first."),
    (HardwareReservation, "hardware reservations. Please move the reservations first."),
    (SpotMarketRequest, "spot market requests. Please delete the requests first."),
)
"""Records that prevent the deletion of a project. All of these are indexed by `project_id`, as those below."""
_GO_ALONG: tuple[type[Record], ...] = (SshKey, BgpConfig, Event)


def begin(account: Account) -> None:
    """Create the initial records, at the first start."""
    if not account.table(Organization):
        organization = account.make(Organization, id=account.identity.organization_id, name="Lab")
        account.make(Project, id=account.identity.project_id, organization_id=organization.id, name="lab")


@shows("organizations", Organization)
def organization_document(account: Account, organization: Organization) -> Json:
    """An organization; projects and members are links."""
    projects = account.table(Project).where("organization_id", organization.id)
    return {
        "name": organization.name,
        "personal": False,
        "customdata": {},
        "credit_amount": 0.0,
        "projects": [link("projects", project.id) for project in projects],
        "members": [link("users", user_id(account))],
        "memberships": [],
    }


@shows("projects", Project)
def project_document(account: Account, project: Project) -> Json:
    """A project; what is in it are links."""
    config = config_of(account, project.id)
    return {
        "url": f"{BASE}/projects/{project.id}",
        "name": project.name,
        "type": "default",
        "backend_transfer_enabled": project.backend_transfer_enabled,
        "customdata": project.customdata,
        "tags": project.tags,
        "max_devices": {},
        "network_status": {},
        "organization": link("organizations", project.organization_id),
        "members": [link("users", user_id(account))],
        "memberships": [],
        "invitations": [],
        "payment_method": link("payment-methods", stable_id("payment-method", "lab")),
        "ssh_keys": [link("ssh-keys", key.id) for key in keys_of(account, project.id)],
        "devices": [link("devices", device.id) for device in devices_of(account, project.id)],
        "volumes": [],
    } | ({"bgp_config": link("bgp-configs", config.id)} if config else {})


def _name(text: str) -> str:
    if len(text) > MAX_NAME:
        raise problem(f"Name is too long (maximum is {MAX_NAME} characters)")
    if any(ord(letter) > 0xFFFF for letter in text):
        raise problem("Name cannot contain characters of more than 3 bytes")
    return text


_ProjectName = Annotated[NotBlank, AfterValidator(_name)]


class _Settings(Input):
    backend_transfer_enabled: bool | None = None
    customdata: Mapping | None = None
    tags: list[str] | None = None
    payment_method_id: str | None = None


class _NewProject(_Settings):
    name: _ProjectName
    organization_id: str | None = None
    type: Literal["default"] | None = None


class _ProjectChange(_Settings):
    name: _ProjectName | None = None


@operation("GET /projects")
def list_projects(call: Call) -> Listing:
    return _projects(call, call.account.table(Project).values())


@operation("GET /organizations/{id}/projects")
def list_organization_projects(call: Call) -> Listing:
    return _projects(call, call.account.table(Project).where("organization_id", call.find(Organization).id))


def _projects(call: Call, found: Iterable[Project]) -> Listing:
    return Listing(name="projects", entries=list(found), shown=lambda entry: project_document(call.account, entry))


@operation("POST /projects", status=201)
def create_project(call: Call) -> Json:
    """Create a project in the given organization, or in the user's default one."""
    wanted = _NewProject.of(call.body)
    organization = wanted.organization_id or call.account.identity.organization_id
    return _created(call, call.account.table(Organization).find(organization), wanted)


@operation("POST /organizations/{id}/projects", status=201)
def create_organization_project(call: Call) -> Json:
    return _created(call, call.find(Organization), _NewProject.of(call.body))


def _created(call: Call, organization: Organization, wanted: _NewProject) -> Json:
    fields = wanted.given("name", "customdata", "tags")
    return project_document(call.account, call.account.make(Project, organization_id=organization.id, **fields))


@operation("PUT /projects/{id}", "PATCH /projects/{id}")
def update_project(call: Call) -> Json:
    """Change the fields that are given."""
    project, wanted = call.find(Project), _ProjectChange.of(call.body)
    project.change(wanted.given("name", "customdata", "tags", "backend_transfer_enabled"), call.account.now())
    return project_document(call.account, project)


@operation("DELETE /projects/{id}")
def delete_project(call: Call) -> None:
    """Refused as long as devices or reserved addresses are in it; what is only settings goes with it."""
    project, account = call.find(Project), call.account
    hasten(account, project.id)
    for kind, what in _IN_USE:
        if account.table(kind).where("project_id", project.id):
            raise Unprocessable(f"Cannot delete a project with {what}")
    for kind in _GO_ALONG:
        for record in account.table(kind).where("project_id", project.id):
            del account.table(kind)[record.id]
    del account.table(Project)[project.id]


@operation("GET /projects/{id}/api-keys")
def list_api_keys(call: Call) -> Json:
    """There are none: the lab makes no keys of projects."""
    call.find(Project)
    return {"api_keys": []}
