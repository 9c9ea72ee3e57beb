"""Organizations, the one user, API keys: records and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import stable_id
from lab.metal_api.events.models import note
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account, Identity


@saved("organizations")
@dataclass(kw_only=True)
class Organization(Record):
    """An organization of the user's."""

    id: str
    name: str
    created_at: str
    updated_at: str
    description: str = ""
    website: str = ""
    twitter: str = ""
    address: Json = field(default_factory=dict[str, Any])
    billing_address: Json = field(default_factory=dict[str, Any])
    customdata: Json = field(default_factory=dict[str, Any])


@saved("users")
@dataclass(kw_only=True)
class User(Record):
    """The one user: whose the lab's token is."""

    id: str
    created_at: str
    updated_at: str
    first_name: str = "Lab"
    last_name: str = "User"
    phone_number: str = ""
    timezone: str = "UTC"
    customdata: Json = field(default_factory=dict[str, Any])


@saved("api_keys", indexed=("project_id", "token"))
@dataclass(kw_only=True)
class ApiKey(Record):
    """A token, of a project or (`project_id` None) of the user."""

    id: str
    token: str
    description: str
    read_only: bool
    project_id: str | None
    created_at: str
    updated_at: str


def begin(account: Account, identity: Identity) -> None:
    """What is there from the start."""
    now = account.now()
    account.table(Organization).add(
        Organization(id=identity.organization_id, name="Lab", created_at=now, updated_at=now)
    )
    account.table(User).add(User(id=user_id(account), created_at=now, updated_at=now))


def user_id(account: Account) -> str:
    """The id of the token's owner."""
    return stable_id("user", account.identity.organization_id)


def user(account: Account) -> User:
    """The one user."""
    return account.table(User)[user_id(account)]


def update_user(account: Account, document: Json) -> User:
    """Change the fields that are given. There is no password in the lab: one that is sent is ignored."""
    body, record = Body(document), user(account)
    changes: Json = {
        name: body.text(name, required=name in document)
        for name in ("first_name", "last_name", "timezone")
        if document.get(name) is not None
    }
    changes |= {"phone_number": body.text("phone_number"), "customdata": body.mapping("customdata")}
    body.text("password")
    body.check()
    record.change(changes, account.now())
    return record


def create(account: Account, document: Json) -> Organization:
    """A new, empty organization."""
    now = account.now()
    fields = _fields(document, new=True)
    organization = Organization(id=account.chance.uuid(), created_at=now, updated_at=now, **fields)
    account.table(Organization).add(organization)
    note(account, "organization.created", f"{organization.name} created", about=[f"organizations/{organization.id}"])
    return organization


def update(account: Account, organization: Organization, document: Json) -> None:
    """Change the fields that are given."""
    organization.change(_fields(document, new=False), account.now())


def _fields(document: Json, *, new: bool) -> Json:
    body = Body(document)
    fields: Json = {"name": body.text("name", required=new or "name" in document)}
    fields |= {name: body.text(name) for name in ("description", "website", "twitter")}
    fields["customdata"] = body.mapping("customdata")
    for name in ("address", "billing_address"):
        fields[name] = body.mapping(name)
        if fields[name]:
            address = Body(fields[name], body.problems)
            for part in ("address", "zip_code", "country"):
                address.text(part, required=True)
    body.moment("enforce_2fa_at")
    body.check()
    return {name: value for name, value in fields.items() if value is not None}


def delete(account: Account, organization: Organization, projects: int) -> None:
    """Refused while it has projects, and for the one that the lab's own project is in."""
    if projects or organization.id == account.identity.organization_id:
        raise Unprocessable("Cannot delete an organization with projects. Please delete the projects first.")
    del account.table(Organization)[organization.id]


def keys(account: Account, project_id: str | None) -> list[ApiKey]:
    """The tokens of a project, or the user's own."""
    if project_id is not None:
        return account.table(ApiKey).where("project_id", project_id)
    return [key for key in account.table(ApiKey).values() if key.project_id is None]


def create_key(account: Account, project_id: str | None, document: Json) -> ApiKey:
    """A new token."""
    body = Body(document)
    description, read_only = body.text("description"), body.flag("read_only")
    body.check()
    now = account.now()
    return account.table(ApiKey).add(
        ApiKey(
            id=account.chance.uuid(),
            token=account.chance.token() + account.chance.token(),
            description=description or "",
            read_only=bool(read_only),
            project_id=project_id,
            created_at=now,
            updated_at=now,
        )
    )
