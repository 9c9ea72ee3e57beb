"""The lab's own routes on the API host, outside /metal/v1: faults, inventory, request counts."""

from __future__ import annotations

import json
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lab.metal_api import faults
from lab.metal_api.exceptions import BadRequest, NotFound
from lab.metal_api.middleware import RequestLog
from lab.metal_api.models import Json, to_json
from lab.metal_api.state import Account
from lab.metal_api.store import Store


def routes(account: Account, store: Store, log: RequestLog) -> list[Route]:
    """Routes under /lab."""

    async def add_fault(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            raise BadRequest("Invalid JSON in the request body") from None
        fault = faults.parse_fault(account, cast("Json", body))
        account.faults[fault.id] = fault
        account.changed()
        await store.commit()
        return JSONResponse(to_json(fault), 201)

    async def list_faults(request: Request) -> Response:
        return JSONResponse({"faults": [to_json(fault) for fault in account.faults.values()]})

    async def clear_faults(request: Request) -> Response:
        account.faults.clear()
        account.changed()
        await store.commit()
        return Response(status_code=204)

    async def delete_fault(request: Request) -> Response:
        if account.faults.pop(request.path_params["id"], None) is None:
            raise NotFound
        account.changed()
        await store.commit()
        return Response(status_code=204)

    async def inventory(request: Request) -> Response:
        """What exists now; a lab that was cleaned up shows the default project and empty lists."""
        default = account.identity.project_id
        return JSONResponse(
            {
                "devices": [
                    {
                        "id": device.id,
                        "hostname": device.hostname,
                        "state": device.state,
                        "project_id": device.project_id,
                        "tags": device.tags,
                        "addresses": [address.address for address in device.addresses],
                    }
                    for device in account.devices.values()
                ],
                "ssh_keys": [
                    {"id": key.id, "label": key.label, "project_id": key.project_id} for key in account.keys.values()
                ],
                "projects": [
                    {"id": entry.id, "name": entry.name} for entry in account.projects.values() if entry.id != default
                ],
                "reservations": [
                    {"id": block.id, "name": block.network, "project_id": block.project_id, "tags": block.tags}
                    for block in account.reservations.values()
                ],
                "bgp_sessions": [
                    {"id": entry.id, "name": entry.address_family, "device_id": entry.device_id}
                    for entry in account.bgp_sessions.values()
                ],
                "faults": [to_json(fault) for fault in account.faults.values()],
            }
        )

    async def requests(request: Request) -> Response:
        return JSONResponse({"counts": dict(log.counts), "statuses": dict(log.statuses)})

    return [
        Route("/lab/faults", add_fault, methods=["POST"]),
        Route("/lab/faults", list_faults, methods=["GET"]),
        Route("/lab/faults", clear_faults, methods=["DELETE"]),
        Route("/lab/faults/{id}", delete_fault, methods=["DELETE"]),
        Route("/lab/inventory", inventory, methods=["GET"]),
        Route("/lab/requests", requests, methods=["GET"]),
    ]
