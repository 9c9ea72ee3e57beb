"""The user, organizations and API keys as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import body_of
from lab.metal_api.exceptions import NotFound
from lab.metal_api.listing import BASE, link, searched
from lab.metal_api.operations import Operations
from lab.metal_api.organizations import models
from lab.metal_api.organizations.models import ApiKey, Organization, User
from lab.metal_api.projects.models import Project
from lab.metal_api.projects.responses import document as project_document
from lab.metal_api.records import Json
from lab.metal_api.state import Account


def document(account: Account, organization: Organization) -> Json:
    """An organization; projects and members are links."""
    shown: Json = {
        "id": organization.id,
        "href": f"{BASE}/organizations/{organization.id}",
        "name": organization.name,
        "description": organization.description,
        "website": organization.website,
        "twitter": organization.twitter,
        "personal": False,
        "customdata": organization.customdata,
        "credit_amount": 0.0,
        "created_at": organization.created_at,
        "updated_at": organization.updated_at,
        "projects": [
            link("projects", project.id) for project in account.table(Project).where("organization_id", organization.id)
        ],
        "members": [link("users", models.user_id(account))],
        "memberships": [],
    }
    if organization.address:
        shown["address"] = organization.address
    if organization.billing_address:
        shown["billing_address"] = organization.billing_address
    return shown


def user_document(account: Account, user: User) -> Json:
    """The one user."""
    return {
        "id": user.id,
        "short_id": user.id[:8],
        "href": f"{BASE}/users/{user.id}",
        "first_name": user.first_name,
        "last_name": user.last_name,
        "full_name": f"{user.first_name} {user.last_name}",
        "email": "lab@facility.test",
        "emails": [],
        "phone_number": user.phone_number,
        "customdata": user.customdata,
        "default_organization_id": account.identity.organization_id,
        "default_project_id": account.identity.project_id,
        "timezone": user.timezone,
        "two_factor_auth": "",
        "created_at": user.created_at,
        "updated_at": user.updated_at,
    }


def key_document(account: Account, key: ApiKey) -> Json:
    """A token, with whose it is."""
    if key.project_id is None:
        owner = {"user": user_document(account, models.user(account))}
    else:
        owner = {"project": project_document(account, account.table(Project)[key.project_id])}
    return {
        "id": key.id,
        "token": key.token,
        "description": key.description,
        "read_only": key.read_only,
        "created_at": key.created_at,
        "updated_at": key.updated_at,
        **owner,
    }


class Responses(Operations):
    """One method per operation."""

    # The user

    async def current_user(self, request: Request) -> Response:
        return self.shown(request, self._user(models.user(self.account)))

    async def update_current_user(self, request: Request) -> Response:
        return self.saved(request, self._user(models.update_user(self.account, await body_of(request))), 200)

    async def users(self, request: Request) -> Response:
        return self.paged(request, "users", [models.user(self.account)], self._user)

    async def user(self, request: Request) -> Response:
        return self.shown(request, self._user(self.find(request, User)))

    async def user_customdata(self, request: Request) -> Response:
        return JSONResponse(self.find(request, User).customdata)

    # Organizations

    async def list_all(self, request: Request) -> Response:
        """`personal` and `without_projects` say include (the default), exclude, or only; none is personal."""
        query, found = request.query_params, list(self.account.table(Organization).values())
        if query.get("personal") == "only":
            found = []
        wanted = query.get("without_projects")
        if wanted in ("exclude", "only"):
            found = [entry for entry in found if bool(self._projects(entry)) == (wanted == "exclude")]
        return self.paged(request, "organizations", found, self._organization)

    async def create(self, request: Request) -> Response:
        organization = models.create(self.account, await body_of(request))
        return self.saved(request, self._organization(organization), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self._organization(self.find(request, Organization)))

    async def update(self, request: Request) -> Response:
        organization = self.find(request, Organization)
        models.update(self.account, organization, await body_of(request))
        return self.saved(request, self._organization(organization), 200)

    async def delete(self, request: Request) -> Response:
        organization = self.find(request, Organization)
        models.delete(self.account, organization, len(self._projects(organization)))
        return self.saved(request, None, 204)

    async def customdata(self, request: Request) -> Response:
        return JSONResponse(self.find(request, Organization).customdata)

    def _projects(self, organization: Organization) -> list[Project]:
        return self.account.table(Project).where("organization_id", organization.id)

    # API keys

    async def keys(self, request: Request) -> Response:
        return self._keys(request, None)

    async def project_keys(self, request: Request) -> Response:
        return self._keys(request, self.find(request, Project).id)

    def _keys(self, request: Request, project_id: str | None) -> Response:
        found = searched(
            models.keys(self.account, project_id), request.query_params.get("search"), lambda key: (key.description,)
        )
        return self.listed(request, "api_keys", found, self._key)

    async def create_key(self, request: Request) -> Response:
        key = models.create_key(self.account, None, await body_of(request))
        return self.saved(request, self._key(key), 201)

    async def create_project_key(self, request: Request) -> Response:
        key = models.create_key(self.account, self.find(request, Project).id, await body_of(request))
        return self.saved(request, self._key(key), 201)

    async def delete_key(self, request: Request) -> Response:
        """A key of the user's or of a project's."""
        del self.account.table(ApiKey)[self.find(request, ApiKey).id]
        return self.saved(request, None, 204)

    async def delete_user_key(self, request: Request) -> Response:
        if self.find(request, ApiKey).project_id is not None:
            raise NotFound
        return await self.delete_key(request)

    def _user(self, user: User) -> Json:
        return user_document(self.account, user)

    def _organization(self, organization: Organization) -> Json:
        return document(self.account, organization)

    def _key(self, key: ApiKey) -> Json:
        return key_document(self.account, key)
