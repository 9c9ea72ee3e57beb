"""Organizations and API keys as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.listing import BASE, link, searched
from lab.metal_api.operations import Operations
from lab.metal_api.organizations import models
from lab.metal_api.organizations.models import ApiKey, Organization
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


def key_document(account: Account, key: ApiKey) -> Json:
    """A token, with its project."""
    return {
        "id": key.id,
        "token": key.token,
        "description": key.description,
        "read_only": key.read_only,
        "created_at": key.created_at,
        "updated_at": key.updated_at,
        "project": project_document(account, account.table(Project)[key.project_id]),
    }


class Responses(Operations):
    """One method per operation."""

    async def show(self, request: Request) -> Response:
        return self.shown(request, self._organization(self.find(request, Organization)))

    # API keys

    async def project_keys(self, request: Request) -> Response:
        found = searched(
            models.keys(self.account, self.find(request, Project).id),
            request.query_params.get("search"),
            lambda key: (key.description,),
        )
        return self.listed(request, "api_keys", found, self._key)

    async def create_project_key(self, request: Request) -> Response:
        key = models.create_key(self.account, self.find(request, Project).id, await body_of(request))
        return self.saved(request, self._key(key), 201)

    async def delete_key(self, request: Request) -> Response:
        del self.account.table(ApiKey)[self.find(request, ApiKey).id]
        return self.saved(request, None, 204)

    def _organization(self, organization: Organization) -> Json:
        return document(self.account, organization)

    def _key(self, key: ApiKey) -> Json:
        return key_document(self.account, key)
