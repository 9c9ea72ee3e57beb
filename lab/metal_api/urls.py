"""The API's routes and the application they make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.metal_api import control
from lab.metal_api.exceptions import ApiError, NotImplementedInLab
from lab.metal_api.middleware import Gate, RequestLog
from lab.metal_api.network_responses import BASE
from lab.metal_api.network_views import NetworkViews
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.routing import NoRouter, Routing
from lab.metal_api.state import Account
from lab.metal_api.store import Store
from lab.metal_api.views import Views

Endpoint = Callable[[Request], Awaitable[Response]]


def _table(views: Views, network: NetworkViews) -> list[tuple[str, dict[str, Endpoint]]]:
    """Path → method → operation. The real API takes PATCH wherever it takes PUT; packngo uses both."""
    return [
        ("/user", {"GET": views.user}),
        ("/organizations", {"GET": views.organizations}),
        ("/organizations/{id}", {"GET": views.organization}),
        (
            "/organizations/{id}/projects",
            {"GET": views.organization_projects, "POST": views.create_organization_project},
        ),
        ("/projects", {"GET": views.projects, "POST": views.create_project}),
        (
            "/projects/{id}",
            {
                "GET": views.project,
                "PUT": views.update_project,
                "PATCH": views.update_project,
                "DELETE": views.delete_project,
            },
        ),
        ("/projects/{id}/bgp-config", {"GET": network.bgp_config}),
        ("/projects/{id}/bgp-configs", {"POST": network.request_bgp_config}),
        ("/projects/{id}/bgp/sessions", {"GET": network.project_sessions}),
        ("/projects/{id}/ips", {"GET": network.project_ips, "POST": network.reserve}),
        ("/projects/{id}/events", {"GET": views.project_events}),
        ("/projects/{id}/facilities", {"GET": views.facilities}),
        ("/projects/{id}/plans", {"GET": views.plans}),
        ("/projects/{id}/ssh-keys", {"GET": views.project_keys, "POST": views.create_project_key}),
        ("/projects/{id}/devices", {"GET": views.devices, "POST": views.create_device}),
        ("/ssh-keys", {"GET": views.keys, "POST": views.create_key}),
        (
            "/ssh-keys/{id}",
            {"GET": views.key, "PUT": views.update_key, "PATCH": views.update_key, "DELETE": views.delete_key},
        ),
        (
            "/devices/{id}",
            {
                "GET": views.device,
                "PUT": views.update_device,
                "PATCH": views.update_device,
                "DELETE": views.delete_device,
            },
        ),
        ("/devices/{id}/actions", {"POST": views.device_action}),
        ("/devices/{id}/events", {"GET": views.device_events}),
        ("/devices/{id}/ips", {"GET": network.device_ips, "POST": network.assign}),
        ("/devices/{id}/bgp/neighbors", {"GET": network.bgp_neighbors}),
        ("/devices/{id}/bgp/sessions", {"GET": network.device_sessions, "POST": network.create_session}),
        (
            "/bgp/sessions/{id}",
            {
                "GET": network.session,
                "PUT": network.update_session,
                "PATCH": network.update_session,
                "DELETE": network.delete_session,
            },
        ),
        (
            "/ips/{id}",
            {
                "GET": network.ip,
                "PUT": network.update_ip,
                "PATCH": network.update_ip,
                "DELETE": network.delete_ip,
            },
        ),
        ("/events", {"GET": views.events}),
        ("/events/{id}", {"GET": views.event}),
        ("/facilities", {"GET": views.facilities}),
        ("/locations/metros", {"GET": views.metros}),
        ("/locations/metros/{id}", {"GET": views.metro}),
        ("/plans", {"GET": views.plans}),
        ("/operating-systems", {"GET": views.operating_systems}),
        ("/capacity", {"GET": views.capacity}),
        ("/capacity/metros", {"GET": views.metro_capacity}),
    ]


def _endpoint(path: str, methods: dict[str, Endpoint]) -> Route:
    async def dispatch(request: Request) -> Response:
        operation = methods.get(request.method)
        if operation is None:
            raise NotImplementedInLab(f"{request.method} {request.url.path}")
        return await operation(request)

    return Route(BASE + path, dispatch, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return JSONResponse(error.body(), error.status)


async def _unknown(request: Request) -> Response:
    raise NotImplementedInLab(f"{request.method} {request.url.path}")


def api(
    account: Account,
    provisioner: Provisioner,
    store: Store,
    log: RequestLog | None = None,
    routing: Routing | None = None,
) -> ASGIApp:
    """The application behind api.equinix.com, for a facility with or without a router."""
    log, routing = log or RequestLog(), routing or Routing(account, NoRouter())
    views, network = Views(account, provisioner, store), NetworkViews(account, routing, store)
    table = [_endpoint(path, methods) for path, methods in _table(views, network)]
    everything = Route("/{path:path}", _unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
    routes = [*control.routes(account, store, log), *table, everything]
    return Gate(Starlette(routes=routes, exception_handlers={ApiError: _refused}), account, log)
