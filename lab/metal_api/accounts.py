"""Organizations, projects and the projects' API keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator

from lab.metal_api.access import ApiKey, Organization, Project, user_id
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
"""What a project cannot be deleted with. All of these are indexed by `project_id`, as those below."""
_GO_ALONG: tuple[type[Record], ...] = (SshKey, ApiKey, BgpConfig, Event)


def begin(account: Account) -> None:
    """What is there from the start, at the first start."""
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
    seen = [project for project in found if call.caller.sees(project.id)]
    return Listing(name="projects", entries=seen, shown=lambda entry: project_document(call.account, entry))


@operation("POST /projects", status=201)
def create_project(call: Call) -> Json:
    """In the organization that is named, or the user's default."""
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


class _NewApiKey(Input):
    description: str = ""
    read_only: bool = False


def _key_document(account: Account, key: ApiKey) -> Json:
    return {
        "id": key.id,
        "token": key.token,
        "description": key.description,
        "read_only": key.read_only,
        "created_at": key.created_at,
        "updated_at": key.updated_at,
        "project": project_document(account, account.table(Project)[key.project_id]),
    }


@operation("GET /projects/{id}/api-keys")
def list_api_keys(call: Call) -> Listing:
    keys = call.account.table(ApiKey).where("project_id", call.find(Project).id)
    return Listing(name="api_keys", entries=keys, shown=lambda key: _key_document(call.account, key), per_page=None)


@operation("POST /projects/{id}/api-keys", status=201)
def create_api_key(call: Call) -> Json:
    project, wanted, account = call.find(Project), _NewApiKey.of(call.body), call.account
    token = account.chance.token()
    return _key_document(account, account.make(ApiKey, token=token, project_id=project.id, **wanted.model_dump()))


@operation("DELETE /api-keys/{id}")
def delete_api_key(call: Call) -> None:
    del call.account.table(ApiKey)[call.find(ApiKey).id]
