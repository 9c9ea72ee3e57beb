"""Who may ask: the lab's own token, which opens everything. Tokens of projects cannot be made in the lab."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.catalog import stable_id
from lab.metal_api.exceptions import Unauthorized
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account


@saved("organizations")
@dataclass(kw_only=True)
class Organization(Record):
    """The user's organization."""

    name: str


@saved("projects", indexed=("organization_id",))
@dataclass(kw_only=True)
class Project(Record):
    """A project of an organization."""

    organization_id: str
    name: str
    backend_transfer_enabled: bool = False
    customdata: Json = field(default_factory=dict[str, Any])
    tags: list[str] = field(default_factory=list[str])


def user_id(account: Account) -> str:
    """The id of the owner of the lab's token."""
    return stable_id("user", account.identity.organization_id)


def admit(account: Account, token: str) -> None:
    """Raises Unauthorized where a request does not bring the lab's token."""
    if not hmac.compare_digest(token.encode(), account.identity.token.encode()):
        raise Unauthorized
