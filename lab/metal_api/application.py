"""The application behind api.equinix.com: the operations of all services, put together."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.metal_api import accounts, bgp, control, device_operations
from lab.metal_api.exceptions import ApiError, NotImplementedInLab
from lab.metal_api.listing import BASE
from lab.metal_api.middleware import Gate, refusal
from lab.metal_api.operations import OPERATIONS, Lab, perform
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.request_log import RequestLog
from lab.metal_api.routing import NoRouter, Routing
from lab.metal_api.settling import settle
from lab.metal_api.state import Account
from lab.metal_api.store import Store

SERVICES = (accounts, bgp, control, device_operations)
"""They, and what they import, have registered their operations."""
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return refusal(error)


async def _unknown(request: Request) -> Response:
    raise NotImplementedInLab(f"{request.method} {request.url.path}")


def _route(lab: Lab, path: str) -> Route:
    async def dispatch(request: Request) -> Response:
        found = OPERATIONS[path].get(request.method)
        if found is None:
            return await _unknown(request)
        settle(lab.account, lab.provisioner)
        return await perform(lab, request, *found)

    return Route(path if path.startswith("/lab/") else BASE + path, dispatch, methods=_METHODS)


def api(
    account: Account,
    provisioner: Provisioner,
    store: Store,
    log: RequestLog | None = None,
    routing: Routing | None = None,
) -> ASGIApp:
    """The application, for a facility with or without a router."""
    accounts.begin(account)
    lab = Lab(
        account=account,
        provisioner=provisioner,
        store=store,
        routing=routing or Routing(account, NoRouter()),
        log=log or RequestLog(),
    )
    everything = Route("/{path:path}", _unknown, methods=_METHODS)
    routes = [*(_route(lab, path) for path in OPERATIONS), everything]
    return Gate(Starlette(routes=routes, exception_handlers={ApiError: _refused}), account, lab.log)
