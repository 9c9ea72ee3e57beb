"""Organizations and the API keys of projects: records and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import stable_id
from lab.metal_api.listing import BASE
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


@saved("api_keys", indexed=("project_id", "token"))
@dataclass(kw_only=True)
class ApiKey(Record):
    """A token of a project."""

    id: str
    token: str
    description: str
    read_only: bool
    project_id: str
    created_at: str
    updated_at: str


def begin(account: Account, identity: Identity) -> None:
    """What is there from the start."""
    now = account.now()
    account.table(Organization).add(
        Organization(id=identity.organization_id, name="Lab", created_at=now, updated_at=now)
    )


def user_id(account: Account) -> str:
    """The id of the token's owner."""
    return stable_id("user", account.identity.organization_id)


def creator(account: Account) -> Json:
    """The one user, whose the lab's token is, as what was made shows its maker."""
    identity, since = user_id(account), account.table(Organization)[account.identity.organization_id].created_at
    return {
        "id": identity,
        "short_id": identity[:8],
        "href": f"{BASE}/users/{identity}",
        "first_name": "Lab",
        "last_name": "User",
        "full_name": "Lab User",
        "email": "lab@facility.test",
        "created_at": since,
        "updated_at": since,
    }


def keys(account: Account, project_id: str) -> list[ApiKey]:
    """The tokens of a project."""
    return account.table(ApiKey).where("project_id", project_id)


def create_key(account: Account, project_id: str, document: Json) -> ApiKey:
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
