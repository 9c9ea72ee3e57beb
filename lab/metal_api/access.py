"""Who may do what: the token of a request, and what it opens.

The lab's own token opens everything. A token that was made through the API is a project's: it opens that project,
nothing of others, and not the organization; it may be `read_only`. For refusals the API's description has
a status alone; the words are ours.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any

from lab.metal_api.catalog import stable_id
from lab.metal_api.exceptions import Forbidden, NotFound, Unauthorized
from lab.metal_api.listing import BASE
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

_HARMLESS = frozenset({f"{BASE}/capacity", f"{BASE}/capacity/metros"})
"""Questions that are asked with POST."""
_USERS = ("user", "users", "organizations", "api-keys")


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

    @property
    def project_id(self) -> str:
        """Whose token sees it."""
        return self.id


@saved("api_keys", indexed=("project_id", "token"))
@dataclass(kw_only=True)
class ApiKey(Record):
    """A token of a project."""

    token: str
    description: str
    read_only: bool
    project_id: str


def user_id(account: Account) -> str:
    """The id of the owner of the lab's token."""
    return stable_id("user", account.identity.organization_id)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whose request it is."""

    project_id: str | None = None
    """Of a project's token."""
    read_only: bool = False

    def sees(self, project_id: str | None) -> bool:
        """Whether what belongs to a project, or to the organization (None), is there for this caller."""
        return self.project_id in (None, project_id)

    def follows(self, href: str) -> bool:
        """Whether `include` may show what is behind a link: not the user's things, which lead to other projects."""
        return self.project_id is None or href.removeprefix(f"{BASE}/").partition("/")[0] not in _USERS


def admit(account: Account, token: str, method: str, path: str) -> Caller:
    """The caller of a request; Unauthorized, Forbidden or NotFound where it is none, or not theirs to make."""
    if hmac.compare_digest(token.encode(), account.identity.token.encode()):
        return Caller()
    keys = account.table(ApiKey).where("token", token)
    if not keys:
        raise Unauthorized
    caller = Caller(project_id=keys[0].project_id, read_only=keys[0].read_only)
    if not path.startswith(f"{BASE}/"):
        raise Forbidden("Only the lab's own token opens this")
    if caller.read_only and method not in {"GET", "HEAD"} and path not in _HARMLESS:
        raise Forbidden("You are not authorized to perform this action: the API key is read-only")
    collection, _, rest = path.removeprefix(f"{BASE}/").partition("/")
    if collection in _USERS or (method != "GET" and (collection, rest) == ("projects", "")):
        raise Forbidden("You are not authorized to perform this action: the API key is a project's")
    if collection == "projects" and rest and rest.partition("/")[0] != caller.project_id:
        raise NotFound
    return caller
