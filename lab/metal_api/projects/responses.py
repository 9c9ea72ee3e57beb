"""Projects as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.bgp.models import config_of
from lab.metal_api.body import Body, body_of
from lab.metal_api.catalog.models import stable_id
from lab.metal_api.devices.models import project_devices
from lab.metal_api.listing import BASE, link
from lab.metal_api.operations import Operations
from lab.metal_api.organizations.models import Organization, user_id
from lab.metal_api.projects import models
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys.models import project_keys
from lab.metal_api.state import Account


def document(account: Account, project: Project) -> Json:
    """A project; what is in it are links."""
    href, config = f"{BASE}/projects/{project.id}", config_of(account, project.id)
    shown: Json = {
        "id": project.id,
        "href": href,
        "url": href,
        "name": project.name,
        "type": project.kind,
        "created_at": project.created_at,
        "updated_at": project.updated_at,
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
        "ssh_keys": [link("ssh-keys", key.id) for key in project_keys(account, project.id)],
        "devices": [link("devices", device.id) for device in project_devices(account, project.id)],
        "volumes": [],
    }
    if config is not None:
        shown["bgp_config"] = link("bgp-configs", config.id)
    return shown


class Responses(Operations):
    """One method per operation."""

    async def list_all(self, request: Request) -> Response:
        return self._page(request, list(self.account.table(Project).values()))

    async def list_of_organization(self, request: Request) -> Response:
        identity = self.find(request, Organization).id
        return self._page(request, self.account.table(Project).where("organization_id", identity))

    def _page(self, request: Request, projects: list[Project]) -> Response:
        wanted, caller = request.query_params.get("name"), self.caller(request)
        found = [project for project in projects if wanted in (None, project.name) and caller.sees(project.id)]
        return self.paged(request, "projects", found, self.document)

    async def create(self, request: Request) -> Response:
        """In the organization that is named, or the user's default."""
        fields = await body_of(request)
        body = Body(fields)
        organization = body.text("organization_id")
        body.check()
        return self._created(request, organization or self.account.identity.organization_id, fields)

    async def create_in_organization(self, request: Request) -> Response:
        return self._created(request, self.find(request, Organization).id, await body_of(request))

    def _created(self, request: Request, organization_id: str, fields: Json) -> Response:
        project = models.create(self.account, organization_id, fields)
        return self.saved(request, self.document(project), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self.find(request, Project)))

    async def update(self, request: Request) -> Response:
        project = self.find(request, Project)
        models.update(self.account, project, await body_of(request))
        return self.saved(request, self.document(project), 200)

    async def delete(self, request: Request) -> Response:
        models.delete(self.account, self.find(request, Project))
        return self.saved(request, None, 204)

    def document(self, project: Project) -> Json:
        return document(self.account, project)
