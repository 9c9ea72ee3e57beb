"""The lab's own routes on the API host, outside /metal/v1, for the lab's own token.

POST, GET, DELETE /lab/faults, DELETE /lab/faults/{id}    misbehaviour: see `faults`
PUT, GET, DELETE  /lab/capacity                           what there is to order: see `catalog.capacity`
PUT, GET, DELETE  /lab/rate-limit                         requests in a time: see `limits`
GET               /lab/inventory, /lab/requests           what exists, and what was asked

Services have some of their own, `control` in their `urls`:

POST              /lab/hardware-reservations              {plan, facility, count?, spare?, project_id?, ...}: sell some
DELETE            /lab/hardware-reservations/{id}         end a contract
POST              /lab/spot-prices                        {plan, metro | facility, price}: who is outbid gets notice
POST              /lab/spot-evictions                     {id, seconds?}: end a spot device, or all of a request
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lab.metal_api import faults, limits
from lab.metal_api.bgp.models import BgpSession
from lab.metal_api.body import body_of
from lab.metal_api.catalog import capacity
from lab.metal_api.devices.models import Device
from lab.metal_api.exceptions import NotFound
from lab.metal_api.gateways.models import Gateway
from lab.metal_api.ips.models import Reservation
from lab.metal_api.middleware import RequestLog
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json, to_json
from lab.metal_api.spot_market.models import SpotMarketRequest
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.state import Account
from lab.metal_api.store import Store
from lab.metal_api.virtual_networks.models import VirtualNetwork


def routes(account: Account, store: Store, log: RequestLog) -> list[Route]:
    """Routes under /lab."""

    async def add_fault(request: Request) -> Response:
        fault = faults.parse_fault(account, await body_of(request))
        account.table(faults.Fault).add(fault)
        store.commit()
        return JSONResponse(to_json(fault), 201)

    async def list_faults(request: Request) -> Response:
        return JSONResponse({"faults": [to_json(fault) for fault in account.table(faults.Fault).values()]})

    async def clear_faults(request: Request) -> Response:
        account.table(faults.Fault).clear()
        store.commit()
        return Response(status_code=204)

    async def delete_fault(request: Request) -> Response:
        if account.table(faults.Fault).pop(request.path_params["id"], None) is None:
            raise NotFound
        store.commit()
        return Response(status_code=204)

    async def tell_capacity(request: Request) -> Response:
        told = capacity.tell(account, await body_of(request))
        store.commit()
        return JSONResponse({"capacity": [to_json(stock) for stock in told]})

    async def told_capacity(request: Request) -> Response:
        return JSONResponse({"capacity": [to_json(stock) for stock in account.table(capacity.Stock).values()]})

    async def forget_capacity(request: Request) -> Response:
        account.table(capacity.Stock).clear()
        store.commit()
        return Response(status_code=204)

    async def set_limit(request: Request) -> Response:
        limit = limits.tell(account, await body_of(request))
        store.commit()
        return JSONResponse(to_json(limit))

    async def limit(request: Request) -> Response:
        return JSONResponse({"limits": [to_json(entry) for entry in account.table(limits.RateLimit).values()]})

    async def lift_limit(request: Request) -> Response:
        limits.lift(account)
        store.commit()
        return Response(status_code=204)

    async def inventory(request: Request) -> Response:
        """What exists now; a lab that was cleaned up shows the default project and empty lists."""
        return JSONResponse(_inventory(account))

    async def requests(request: Request) -> Response:
        return JSONResponse(
            {
                "counts": dict(log.counts),
                "statuses": dict(log.statuses),
                "seconds": {"median": log.latency(0.5), "p95": log.latency(0.95)},
            }
        )

    return [
        Route("/lab/faults", add_fault, methods=["POST"]),
        Route("/lab/faults", list_faults, methods=["GET"]),
        Route("/lab/faults", clear_faults, methods=["DELETE"]),
        Route("/lab/faults/{id}", delete_fault, methods=["DELETE"]),
        Route("/lab/capacity", tell_capacity, methods=["PUT"]),
        Route("/lab/capacity", told_capacity, methods=["GET"]),
        Route("/lab/capacity", forget_capacity, methods=["DELETE"]),
        Route("/lab/rate-limit", set_limit, methods=["PUT"]),
        Route("/lab/rate-limit", limit, methods=["GET"]),
        Route("/lab/rate-limit", lift_limit, methods=["DELETE"]),
        Route("/lab/inventory", inventory, methods=["GET"]),
        Route("/lab/requests", requests, methods=["GET"]),
    ]


def _inventory(account: Account) -> Json:
    default = account.identity.project_id
    projects, reservations = account.table(Project).values(), account.table(Reservation).values()
    return {
        "devices": [
            {
                "id": device.id,
                "hostname": device.hostname,
                "state": device.state,
                "project_id": device.project_id,
                "tags": device.tags,
                "addresses": device.own_addresses,
            }
            for device in account.table(Device).values()
        ],
        "ssh_keys": [
            {"id": key.id, "label": key.label, "project_id": key.project_id} for key in account.table(SshKey).values()
        ],
        "projects": [{"id": entry.id, "name": entry.name} for entry in projects if entry.id != default],
        "reservations": [
            {"id": block.id, "name": block.network, "project_id": block.project_id, "tags": block.tags}
            for block in reservations
        ],
        "bgp_sessions": [
            {"id": entry.id, "name": entry.address_family, "device_id": entry.device_id}
            for entry in account.table(BgpSession).values()
        ],
        "virtual_networks": [
            {"id": entry.id, "name": f"{entry.metro}/{entry.vxlan}", "project_id": entry.project_id}
            for entry in account.table(VirtualNetwork).values()
        ],
        "gateways": [
            {"id": entry.id, "name": entry.state, "project_id": entry.project_id}
            for entry in account.table(Gateway).values()
        ],
        "spot_market_requests": [
            {"id": entry.id, "name": entry.plan, "project_id": entry.project_id}
            for entry in account.table(SpotMarketRequest).values()
        ],
        "faults": [to_json(fault) for fault in account.table(faults.Fault).values()],
    }
