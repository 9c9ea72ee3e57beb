"""Projects: records and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.bgp.models import BgpConfig
from lab.metal_api.body import Body
from lab.metal_api.devices.models import Batch, Device
from lab.metal_api.events.models import Event, note
from lab.metal_api.exceptions import NotFound, Unprocessable
from lab.metal_api.gateways import models as gateways
from lab.metal_api.gateways.models import Gateway
from lab.metal_api.hardware_reservations.models import HardwareReservation
from lab.metal_api.ips.models import Reservation
from lab.metal_api.organizations.models import ApiKey, Organization
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.spot_market.models import SpotMarketRequest
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.state import Account, Identity
from lab.metal_api.virtual_networks.models import VirtualNetwork

MAX_NAME = 80
KINDS = ("default", "vmce")
_IN_USE: tuple[tuple[type[Record], str], ...] = (
    (Device, "active devices. Please delete the devices first."),
    (Gateway, "metal gateways. Please delete the gateways first."),
    (Reservation, "IP reservations. Please delete the reservations first."),
    (VirtualNetwork, "virtual networks. Please delete the virtual networks first."),
    (HardwareReservation, "hardware reservations. Please move the reservations first."),
    (SpotMarketRequest, "spot market requests. Please delete the requests first."),
)
"""What a project cannot be deleted with. All of these are indexed by `project_id`, as those below."""
_GO_ALONG: tuple[type[Record], ...] = (SshKey, ApiKey, BgpConfig, Batch, Event)


@saved("projects", indexed=("organization_id",))
@dataclass(kw_only=True)
class Project(Record):
    """A project of an organization."""

    id: str
    organization_id: str
    name: str
    created_at: str
    updated_at: str
    backend_transfer_enabled: bool = False
    kind: str = "default"
    customdata: Json = field(default_factory=dict[str, Any])
    tags: list[str] = field(default_factory=list[str])

    @property
    def project_id(self) -> str:
        """Whose token sees it."""
        return self.id


def begin(account: Account, identity: Identity) -> None:
    """The project that is there from the start."""
    now = account.now()
    account.table(Project).add(
        Project(
            id=identity.project_id,
            organization_id=identity.organization_id,
            name="lab",
            created_at=now,
            updated_at=now,
        )
    )


def create(account: Account, organization_id: str, document: Json) -> Project:
    """A new, empty project."""
    fields = _fields(document, new=True)
    if organization_id not in account.table(Organization):
        raise NotFound
    now = account.now()
    project = Project(
        id=account.chance.uuid(), organization_id=organization_id, created_at=now, updated_at=now, **fields
    )
    account.table(Project).add(project)
    note(account, "project.created", f"{project.name} created", project_id=project.id)
    return project


def update(account: Account, project: Project, document: Json) -> None:
    """Change the fields that are given."""
    project.change(_fields(document, new=False), account.now())
    note(account, "project.updated", f"{project.name} updated", project_id=project.id)


def delete(account: Account, project: Project) -> None:
    """Refused as long as devices or reserved addresses are in it; what is only settings goes with it."""
    gateways.hasten(account, project.id)
    for kind, what in _IN_USE:
        if account.table(kind).where("project_id", project.id):
            raise Unprocessable(f"Cannot delete a project with {what}")
    for kind in _GO_ALONG:
        for record in account.table(kind).where("project_id", project.id):
            del account.table(kind)[record.id]
    del account.table(Project)[project.id]
    note(account, "project.deleted", f"{project.name} deleted", about=[f"organizations/{project.organization_id}"])


def _fields(document: Json, *, new: bool) -> Json:
    body = Body(document)
    name = body.text("name", required=new or "name" in document)
    if name and len(name) > MAX_NAME:
        body.problems.append(f"Name is too long (maximum is {MAX_NAME} characters)")
    if name and any(ord(letter) > 0xFFFF for letter in name):
        body.problems.append("Name cannot contain characters of more than 3 bytes")
    fields: Json = {"name": name, "customdata": body.mapping("customdata"), "tags": body.texts("tags")}
    if new:
        fields["kind"] = body.choice("type", KINDS)
    else:
        fields["backend_transfer_enabled"] = body.flag("backend_transfer_enabled")
    body.text("payment_method_id")
    body.check()
    return {name: value for name, value in fields.items() if value is not None}
