"""The API's operations on devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.body import Body, body_of
from lab.metal_api.devices import batches, ordering, usages
from lab.metal_api.devices.documents import batch_document, document
from lab.metal_api.devices.filters import filtered
from lab.metal_api.devices.models import Batch, Device, project_devices
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.listing import View, flag, searched
from lab.metal_api.metadata import metadata_document
from lab.metal_api.operations import Operations
from lab.metal_api.organizations.models import Organization
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.ssh_keys.responses import document as key_document


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        devices = project_devices(self.account, self.find(request, Project).id)
        return self.paged(request, "devices", filtered(devices, request.query_params), self.document)

    async def list_of_organization(self, request: Request) -> Response:
        identity = self.find(request, Organization).id
        projects = {project.id for project in self.account.table(Project).where("organization_id", identity)}
        devices = [device for device in self.account.table(Device).values() if device.project_id in projects]
        return self.paged(request, "devices", filtered(devices[::-1], request.query_params), self.document)

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

    async def customdata(self, request: Request) -> Response:
        return JSONResponse(self.find(request, Device).customdata)

    async def userdata(self, request: Request) -> Response:
        return JSONResponse({"userdata": self.find(request, Device).userdata})

    async def metadata(self, request: Request) -> Response:
        return JSONResponse(metadata_document(self.account, self.find(request, Device)))

    async def ssh_keys(self, request: Request) -> Response:
        """The registered keys that it was ordered with."""
        keys, query = self.account.table(SshKey), request.query_params
        found = [keys[identity] for identity in self.find(request, Device).ssh_key_ids if identity in keys]
        text = query.get("search", query.get("Search string"))
        found = searched(found, text, lambda key: (key.label, key.key, key.fingerprint))
        return self.listed(request, "ssh_keys", found, lambda key: key_document(self.account, key))

    async def bandwidth(self, request: Request) -> Response:
        """Nobody counts the lab's traffic: both directions, in the order in which packngo wants them, have no data."""
        self.find(request, Device)
        body = Body({name: request.query_params.get(name) for name in ("from", "until")})
        for name in ("from", "until"):
            body.text(name, required=True)
        body.check()
        tags = {"aggregatedBy": "sum", "name": ""}
        directions: list[Json] = [{"target": name, "tags": tags, "datapoints": []} for name in ("inbound", "outbound")]
        return JSONResponse({"bandwidth": directions})

    async def usages(self, request: Request) -> Response:
        device = self.find(request, Device)
        return JSONResponse(
            {"usages": [usages.of_device(self.account, device, usages.Period.of(request.query_params))]}
        )

    # Batches

    async def create_batches(self, request: Request) -> Response:
        project = self.find(request, Project)
        made = batches.order(self.account, project.id, await body_of(request))
        for batch in made:
            for identity in batch.device_ids:
                self.lab.provisioner.provision(self.account.table(Device)[identity])
        return self.saved(request, {"batches": [self._batch(batch) for batch in made]}, 201)

    async def batches(self, request: Request) -> Response:
        found = self.account.table(Batch).where("project_id", self.find(request, Project).id)
        return self.listed(request, "batches", found, self._batch)

    async def batch(self, request: Request) -> Response:
        return self.shown(request, self._batch(self.find(request, Batch)))

    async def delete_batch(self, request: Request) -> Response:
        """Forget a batch, and release its devices if that is asked for."""
        batch, devices = self.find(request, Batch), self.account.table(Device)
        if flag(request.query_params, "remove_associated_instances"):
            for identity in batch.device_ids:
                if identity in devices:
                    self.lab.provisioner.deprovision(devices[identity])
        del self.account.table(Batch)[batch.id]
        return self.saved(request, None, 204)

    def document(self, device: Device) -> Json:
        return document(self.account, device)

    def _batch(self, batch: Batch) -> Json:
        return batch_document(self.account, batch)
