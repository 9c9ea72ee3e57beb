"""What the API's routes do: parse, ask the account, answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api import ordering
from lab.metal_api.catalog import FACILITIES, METROS, OPERATING_SYSTEMS, PLANS
from lab.metal_api.exceptions import NotFound, NotImplementedInLab, Unprocessable
from lab.metal_api.models import Device, Json
from lab.metal_api.operations import Operations, body_of
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.responses import (
    View,
    device_document,
    event_document,
    key_document,
    organization_document,
    project_document,
    user_document,
)
from lab.metal_api.state import Account
from lab.metal_api.store import Store


class Views(Operations):
    """Users, projects, keys, devices, catalogue; addresses and BGP are in `network_views`."""

    def __init__(self, account: Account, provisioner: Provisioner, store: Store) -> None:
        super().__init__(account, store)
        self._provisioner = provisioner

    # User, organization, projects

    async def user(self, request: Request) -> Response:
        return JSONResponse(user_document(self._account))

    async def organizations(self, request: Request) -> Response:
        return self._list(request, "organizations", [self._account], organization_document)

    async def organization(self, request: Request) -> Response:
        self._organization(request)
        return JSONResponse(organization_document(self._account))

    def _organization(self, request: Request) -> None:
        if request.path_params["id"] != self._account.identity.organization_id:
            raise NotFound

    async def projects(self, request: Request) -> Response:
        view, wanted = View.of(request.query_params), request.query_params.get("name")
        found = [entry for entry in self._account.projects.values() if wanted in (None, entry.name)]
        return self._list(request, "projects", found, lambda entry: project_document(self._account, entry, view))

    async def organization_projects(self, request: Request) -> Response:
        self._organization(request)
        return await self.projects(request)

    async def create_project(self, request: Request) -> Response:
        body = await body_of(request)
        if body.get("organization_id") not in (None, "", self._account.identity.organization_id):
            raise NotFound
        project = self._account.create_project(body)
        return await self._saved(project_document(self._account, project, View.of(request.query_params)), 201)

    async def create_organization_project(self, request: Request) -> Response:
        self._organization(request)
        return await self.create_project(request)

    async def project(self, request: Request) -> Response:
        project = self._account.project(request.path_params["id"])
        return JSONResponse(project_document(self._account, project, View.of(request.query_params)))

    async def update_project(self, request: Request) -> Response:
        project = self._account.update_project(request.path_params["id"], await body_of(request))
        return await self._saved(project_document(self._account, project, View.of(request.query_params)), 200)

    async def delete_project(self, request: Request) -> Response:
        self._account.delete_project(request.path_params["id"])
        return await self._saved(None, 204)

    # SSH keys

    async def keys(self, request: Request) -> Response:
        return self._keys(request, list(self._account.keys.values()))

    async def project_keys(self, request: Request) -> Response:
        self._account.project(request.path_params["id"])
        return self._keys(request, self._account.project_keys(request.path_params["id"]))

    def _keys(self, request: Request, keys: Sequence[Any]) -> Response:
        """Key lists are not paged by the real API."""
        search = request.query_params.get("search", request.query_params.get("query", ""))
        found = [key for key in keys if search in key.label or search in key.key or search in key.fingerprint]
        return JSONResponse({"ssh_keys": [key_document(self._account, key) for key in found]})

    async def create_key(self, request: Request) -> Response:
        key = self._account.create_key(await body_of(request), None)
        return await self._saved(key_document(self._account, key), 201)

    async def create_project_key(self, request: Request) -> Response:
        key = self._account.create_key(await body_of(request), request.path_params["id"])
        return await self._saved(key_document(self._account, key), 201)

    async def key(self, request: Request) -> Response:
        return JSONResponse(key_document(self._account, self._account.key(request.path_params["id"])))

    async def update_key(self, request: Request) -> Response:
        key = self._account.update_key(request.path_params["id"], await body_of(request))
        return await self._saved(key_document(self._account, key), 200)

    async def delete_key(self, request: Request) -> Response:
        self._account.delete_key(request.path_params["id"])
        return await self._saved(None, 204)

    # Devices

    def _device(self, request: Request) -> Device:
        return self._account.device(request.path_params["id"])

    def _shown(self, request: Request, device: Device) -> Json:
        return device_document(self._account, device, View.of(request.query_params))

    async def devices(self, request: Request) -> Response:
        query = request.query_params
        found = _filtered(self._account.project_devices(request.path_params["id"]), query)
        view = View.of(query)
        return self._list(request, "devices", found, lambda entry: device_document(self._account, entry, view))

    async def create_device(self, request: Request) -> Response:
        device = ordering.order(self._account, request.path_params["id"], await body_of(request))
        self._account.add_device(device)
        document = self._shown(request, device)
        self._provisioner.provision(device)
        return await self._saved(document, 201)

    async def device(self, request: Request) -> Response:
        return JSONResponse(self._shown(request, self._device(request)))

    async def update_device(self, request: Request) -> Response:
        device = self._device(request)
        ordering.update(device, await body_of(request))
        self._account.set_state(device, device.state)
        return await self._saved(self._shown(request, device), 200)

    async def delete_device(self, request: Request) -> Response:
        self._provisioner.deprovision(self._device(request))
        return await self._saved(None, 204)

    async def device_action(self, request: Request) -> Response:
        device, body = self._device(request), await body_of(request)
        kind = body.get("type") or request.query_params.get("type")
        actions = {
            "power_on": self._provisioner.power_on,
            "power_off": self._provisioner.power_off,
            "reboot": self._provisioner.reboot,
            "reinstall": partial(
                self._provisioner.reinstall,
                preserve_data=bool(body.get("preserve_data")),
                fast=bool(body.get("deprovision_fast")),
            ),
        }
        if kind == "rescue":
            raise NotImplementedInLab("device action rescue")
        if kind == "reinstall" and {"operating_system", "ipxe_script_url"} & body.keys():
            raise NotImplementedInLab("device action reinstall with another system")
        if kind not in actions:
            raise Unprocessable(f"{kind} is not a valid action")
        actions[kind](device)
        return await self._saved(None, 202)

    async def device_events(self, request: Request) -> Response:
        device = self._device(request)
        events = list(reversed(device.events))
        return self._list(request, "events", events, lambda event: event_document(device, event))

    # Events

    async def events(self, request: Request) -> Response:
        return self._events(request, list(self._account.devices.values()))

    async def project_events(self, request: Request) -> Response:
        return self._events(request, self._account.project_devices(request.path_params["id"]))

    def _events(self, request: Request, devices: list[Device]) -> Response:
        pairs = [(device, event) for device in devices for event in device.events]
        pairs.sort(key=lambda pair: pair[1].created_at, reverse=True)
        return self._list(request, "events", pairs, lambda pair: event_document(*pair))

    async def event(self, request: Request) -> Response:
        for device in self._account.devices.values():
            for event in device.events:
                if event.id == request.path_params["id"]:
                    return JSONResponse(event_document(device, event))
        raise NotFound

    # Catalogue

    async def facilities(self, request: Request) -> Response:
        return JSONResponse({"facilities": [entry.document() for entry in FACILITIES.values()]})

    async def metros(self, request: Request) -> Response:
        return JSONResponse({"metros": [entry.document() for entry in METROS.values()]})

    async def metro(self, request: Request) -> Response:
        for entry in METROS.values():
            if request.path_params["id"] in (entry.code, entry.document()["id"]):
                return JSONResponse(entry.document())
        raise NotFound

    async def plans(self, request: Request) -> Response:
        return JSONResponse({"plans": [entry.document() for entry in PLANS.values()]})

    async def operating_systems(self, request: Request) -> Response:
        return JSONResponse({"operating_systems": [entry.document() for entry in OPERATING_SYSTEMS.values()]})

    async def capacity(self, request: Request) -> Response:
        return JSONResponse({"capacity": {code: _levels() for code in FACILITIES}})

    async def metro_capacity(self, request: Request) -> Response:
        return JSONResponse({"capacity": {code: _levels() for code in METROS}})


def _levels() -> Json:
    return {slug: {"level": "normal"} for slug in PLANS}


def _filtered(devices: list[Device], query: Any) -> list[Device]:
    """The filters of the device list: `search` and `tag` repeatable or comma-separated, the rest exact."""
    for tag in [entry for text in query.getlist("tag") for entry in text.split(",") if entry]:
        devices = [device for device in devices if tag in device.tags]
    for name in ("hostname", "state", "facility", "plan"):
        if query.get(name):
            devices = [device for device in devices if getattr(device, name) == query[name]]
    if query.get("metro"):
        devices = [device for device in devices if FACILITIES[device.facility].metro == query["metro"]]
    search = query.get("search")
    if search:
        devices = [device for device in devices if _mentions(device, search)]
    return devices


def _mentions(device: Device, text: str) -> bool:
    fields = [device.hostname, device.description or "", device.id, device.state, device.plan, *device.tags]
    return any(text in entry for entry in [*fields, *(address.address for address in device.addresses)])
