"""The API's operations on addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.devices.models import Device, project_devices
from lab.metal_api.devices.network import indexes
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.ips import models
from lab.metal_api.ips.documents import (
    assignment_document,
    block_document,
    own_block_document,
    own_document,
)
from lab.metal_api.ips.models import Assignment, Reservation
from lab.metal_api.listing import values
from lab.metal_api.operations import Operations
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.state import Account

PER_PAGE = 250


def document(account: Account, identity: str) -> Json:
    """What has this id: a block or an assignment, elastic or of a device's own."""
    owned = own(account, identity)
    if owned is not None:
        device, index, block = owned
        return own_block_document(device, index) if block else own_document(device, index)
    return record_document(account, models.find(account, identity))


def record_document(account: Account, record: Reservation | Assignment) -> Json:
    """A block or an assignment of elastic addresses."""
    return block_document(account, record) if isinstance(record, Reservation) else assignment_document(account, record)


def own(account: Account, identity: str) -> tuple[Device, int, bool] | None:
    """Whose own address this is the id of, which, and whether of the block behind it."""
    for device in account.table(Device).where("address_ids", identity):
        return device, device.address_ids.index(identity), False
    for device in account.table(Device).where("block_ids", identity):
        return device, device.block_ids.index(identity), True
    return None


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        """All blocks of a project: the /31s behind its devices' own addresses, and what was reserved."""
        account, project = self.account, self.find(request, Project).id
        found: list[tuple[str, Callable[[], Json]]] = [
            (
                "public_ipv4" if device.addresses[index].public else "private_ipv4",
                partial(own_block_document, device, index),
            )
            for device in project_devices(account, project)
            for index in indexes(account, device)
        ]
        found += [
            (block.type, partial(block_document, account, block)) for block in models.project_blocks(account, project)
        ]
        wanted = values(request.query_params, "types") + values(request.query_params, "type")
        found = [entry for entry in found if not wanted or entry[0] in wanted]
        return self.paged(request, "ip_addresses", found, lambda entry: entry[1](), per_page=PER_PAGE)

    async def reserve(self, request: Request) -> Response:
        project = self.find(request, Project)
        block = models.reserve(self.account, project.id, await body_of(request))
        return await self.routed(request, block_document(self.account, block), 201)

    async def show(self, request: Request) -> Response:
        self._known(request)
        return self.shown(request, document(self.account, request.path_params["id"]))

    async def update(self, request: Request) -> Response:
        record = self._elastic(request, "changed")
        models.update(record, await body_of(request))
        return self.saved(request, record_document(self.account, record), 200)

    async def delete(self, request: Request) -> Response:
        """Release a block, or take an assignment back."""
        record = self._elastic(request, "deleted")
        if isinstance(record, Reservation):
            models.release(self.account, record)
        else:
            models.unassign(self.account, record)
        return await self.routed(request, None, 204)

    async def assign(self, request: Request) -> Response:
        entry = models.assign(self.account, self.find(request, Device), await body_of(request))
        return await self.routed(request, assignment_document(self.account, entry), 201)

    def _known(self, request: Request) -> Json:
        """What the path's id is of, if the caller may know."""
        identity = request.path_params["id"]
        owned = own(self.account, identity)
        self.visible(request, owned[0] if owned else models.find(self.account, identity))
        return document(self.account, identity)

    def _elastic(self, request: Request, what: str) -> Reservation | Assignment:
        self._known(request)
        if own(self.account, request.path_params["id"]) is not None:
            raise Unprocessable(f"Management addresses cannot be {what}: they go with their device")
        return models.find(self.account, request.path_params["id"])
