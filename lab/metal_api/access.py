"""Who may do what: the token of a request, and what it opens.

The lab's own token opens everything. A token that was made through the API is a project's: it opens that project,
nothing of others, and not the organization; it may be `read_only`. For refusals the API's description has
a status alone; the words are ours.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from starlette.requests import Request

from lab.metal_api.exceptions import Forbidden, NotFound, Unauthorized
from lab.metal_api.listing import BASE
from lab.metal_api.organizations.models import ApiKey
from lab.metal_api.state import Account

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_HARMLESS = frozenset({f"{BASE}/capacity", f"{BASE}/capacity/metros", f"{BASE}/userdata/validate"})
"""Questions that are asked with POST."""
_USERS = ("user", "users", "organizations", "api-keys", "emails", "invitations", "memberships", "payment-methods")


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


def caller_of(request: Request) -> Caller:
    """Who `admit` found to ask."""
    return request.scope["lab.caller"]


def admit(account: Account, token: str, method: str, path: str) -> Caller:
    """The caller of a request; Unauthorized, Forbidden or NotFound where it is none, or not theirs to make."""
    if hmac.compare_digest(token.encode(), account.identity.token.encode()):
        return Caller()
    caller = _known(account, token)
    if not path.startswith(f"{BASE}/"):
        raise Forbidden("Only the lab's own token opens this")
    if caller.read_only and method not in _READS and path not in _HARMLESS:
        raise Forbidden("You are not authorized to perform this action: the API key is read-only")
    collection, _, rest = path.removeprefix(f"{BASE}/").partition("/")
    if collection in _USERS or (method != "GET" and (collection, rest) in {("projects", ""), ("ssh-keys", "")}):
        raise Forbidden("You are not authorized to perform this action: the API key is a project's")
    if collection == "projects" and rest and rest.partition("/")[0] != caller.project_id:
        raise NotFound
    return caller


def _known(account: Account, token: str) -> Caller:
    for key in account.table(ApiKey).where("token", token):
        return Caller(project_id=key.project_id, read_only=key.read_only)
    raise Unauthorized
