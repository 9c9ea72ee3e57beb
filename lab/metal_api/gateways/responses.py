"""Gateways as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.gateways import models
from lab.metal_api.gateways.models import Gateway
from lab.metal_api.ips.documents import block_document
from lab.metal_api.ips.models import Reservation
from lab.metal_api.listing import BASE, link
from lab.metal_api.operations import Operations
from lab.metal_api.organizations.models import user_id
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork


def document(account: Account, gateway: Gateway) -> Json:
    """A gateway. Its block is always shown whole, for a link alone is no block in the API's description."""
    return {
        "id": gateway.id,
        "href": f"{BASE}/metal-gateways/{gateway.id}",
        "state": models.state_of(account, gateway),
        "project": link("projects", gateway.project_id),
        "virtual_network": link("virtual-networks", gateway.network_id),
        "ip_reservation": block_document(account, account.table(Reservation)[gateway.reservation_id]),
        "created_by": link("users", user_id(account)),
        "created_at": gateway.created_at,
        "updated_at": gateway.updated_at,
    }


def lite_document(account: Account, gateway: Gateway) -> Json:
    """A gateway as its VLAN and its block show it."""
    return {
        "id": gateway.id,
        "href": f"{BASE}/metal-gateways/{gateway.id}",
        "state": models.state_of(account, gateway),
        "gateway_address": models.address_of(account, gateway),
        "vlan": account.table(VirtualNetwork)[gateway.network_id].vxlan,
        "created_at": gateway.created_at,
        "updated_at": gateway.updated_at,
    }


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        found = models.gateways_of(self.account, self.find(request, Project, "project_id").id)
        return self.paged(request, "metal_gateways", found, self.document)

    async def create(self, request: Request) -> Response:
        project, document = self.find(request, Project, "project_id"), await body_of(request)
        if document.get("vrf_id"):
            raise NotImplementedInLab("metal gateways with VRFs")
        return self.saved(request, self.document(models.create(self.account, project.id, document)), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self.find(request, Gateway)))

    async def delete(self, request: Request) -> Response:
        gateway = self.find(request, Gateway)
        models.delete(self.account, gateway)
        return self.saved(request, self.document(gateway), 202)

    def document(self, gateway: Gateway) -> Json:
        return document(self.account, gateway)
