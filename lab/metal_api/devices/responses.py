"""The API's operations on devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import Body, body_of
from lab.metal_api.devices import ordering
from lab.metal_api.devices.documents import document
from lab.metal_api.devices.filters import filtered
from lab.metal_api.devices.models import Device, project_devices
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.listing import View
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        devices = project_devices(self.account, self.find(request, Project).id)
        return self.paged(request, "devices", filtered(devices, request.query_params), self.document)

    async def create(self, request: Request) -> Response:
        project = self.find(request, Project)
        device = ordering.order(self.account, project.id, await body_of(request))
        self.account.table(Device).add(device)
        shown = self.document(device)
        self.lab.provisioner.provision(device)
        return self.saved(request, shown, 201)

    async def show(self, request: Request) -> Response:
        """packngo includes what is on the ports as if it were the device's own."""
        view = View.of(request.query_params).within("network_ports", ("virtual_networks", "native_virtual_network"))
        return JSONResponse(view.shown(self.document(self.find(request, Device)), self.lab.resolve))

    async def update(self, request: Request) -> Response:
        device = self.find(request, Device)
        ordering.update(self.account, device, await body_of(request))
        return self.saved(request, self.document(device), 200)

    async def delete(self, request: Request) -> Response:
        self.lab.provisioner.deprovision(self.find(request, Device))
        return self.saved(request, None, 204)

    async def act(self, request: Request) -> Response:
        device, document = self.find(request, Device), await body_of(request)
        if "type" not in document and request.query_params.get("type"):
            document["type"] = request.query_params["type"]
        body, provisioner = Body(document), self.lab.provisioner
        kind = body.text("type", required=True)
        preserve, fast = body.flag("preserve_data"), body.flag("deprovision_fast")
        body.flag("force_delete")
        given = {name for name in ("operating_system", "ipxe_script_url") if body.text(name) is not None}
        body.check()
        actions: dict[str, Callable[[Device], None]] = {
            "power_on": provisioner.power_on,
            "power_off": provisioner.power_off,
            "reboot": provisioner.reboot,
            "reinstall": partial(provisioner.reinstall, preserve_data=bool(preserve), fast=bool(fast)),
        }
        if kind == "rescue":
            raise NotImplementedInLab("device action rescue")
        if kind == "reinstall" and given:
            raise NotImplementedInLab("device action reinstall with another system")
        if kind not in actions:
            raise Unprocessable(f"{kind} is not a valid action")
        actions[kind](device)
        return self.saved(request, None, 202)

    def document(self, device: Device) -> Json:
        return document(self.account, device)
