"""VLANs as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.catalog.models import stable_id
from lab.metal_api.gateways.models import gateway_of
from lab.metal_api.gateways.responses import lite_document
from lab.metal_api.listing import BASE, link
from lab.metal_api.operations import Operations
from lab.metal_api.places import is_in
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks import models, usage
from lab.metal_api.virtual_networks.models import VirtualNetwork


def document(account: Account, network: VirtualNetwork) -> Json:
    """A VLAN; the description says `metro_code`, packngo reads `facility_code` as well."""
    gateway = gateway_of(account, network)
    shown: Json = {
        "id": network.id,
        "href": f"{BASE}/virtual-networks/{network.id}",
        "vxlan": network.vxlan,
        "description": network.description,
        "tags": network.tags,
        "created_at": network.created_at,
        "metro": link("locations/metros", stable_id("metro", network.metro)),
        "assigned_to": link("projects", network.project_id),
        "assigned_to_virtual_circuit": False,
        "instances": [link("devices", device.id) for device in usage.devices_in(account, network)],
        "metal_gateways": [lite_document(account, gateway)] if gateway else [],
    }
    if network.facility is None:
        shown["metro_code"] = network.metro  # for the official provider a VLAN is of one or the other, never of both
    else:
        shown["facility"] = link("facilities", stable_id("facility", network.facility))
        shown["facility_code"] = network.facility
    return shown


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        """Not paged by the real API."""
        query = request.query_params
        found = models.networks_of(self.account, self.find(request, Project).id)
        for name in ("metro", "facility"):
            if query.get(name):
                found = [each for each in found if is_in(query[name], metro=each.metro, facility=each.facility)]
        return self.listed(request, "virtual_networks", found, self.document)

    async def create(self, request: Request) -> Response:
        network = models.create(self.account, self.find(request, Project).id, await body_of(request))
        return self.saved(request, self.document(network), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self.find(request, VirtualNetwork)))

    async def update(self, request: Request) -> Response:
        network = self.find(request, VirtualNetwork)
        models.update(network, await body_of(request))
        return self.saved(request, self.document(network), 200)

    async def delete(self, request: Request) -> Response:
        usage.delete(self.account, self.find(request, VirtualNetwork))
        return self.saved(request, None, 204)

    def document(self, network: VirtualNetwork) -> Json:
        return document(self.account, network)
