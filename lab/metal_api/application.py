"""The application behind api.equinix.com: the services' routes, put together."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.metal_api import control
from lab.metal_api.bgp import urls as bgp
from lab.metal_api.catalog import urls as catalog
from lab.metal_api.devices import urls as devices
from lab.metal_api.devices.provisioning import Provisioner
from lab.metal_api.events import urls as events
from lab.metal_api.exceptions import ApiError, NotImplementedInLab
from lab.metal_api.gateways import urls as gateways
from lab.metal_api.hardware_reservations import urls as hardware_reservations
from lab.metal_api.ips import urls as ips
from lab.metal_api.listing import BASE
from lab.metal_api.middleware import Gate, RequestLog, refusal
from lab.metal_api.operations import Endpoint, Lab, Urls
from lab.metal_api.organizations import models as organizations_models
from lab.metal_api.organizations import urls as organizations
from lab.metal_api.ports import urls as ports
from lab.metal_api.projects import models as projects_models
from lab.metal_api.projects import urls as projects
from lab.metal_api.routing import NoRouter, Routing
from lab.metal_api.settling import settle
from lab.metal_api.spot_market import urls as spot_market
from lab.metal_api.ssh_keys import urls as ssh_keys
from lab.metal_api.state import Account
from lab.metal_api.store import Store
from lab.metal_api.virtual_networks import urls as virtual_networks

SERVICES = (
    organizations.urls,
    projects.urls,
    ssh_keys.urls,
    devices.urls,
    ips.urls,
    bgp.urls,
    events.urls,
    catalog.urls,
    virtual_networks.urls,
    ports.urls,
    gateways.urls,
    hardware_reservations.urls,
    spot_market.urls,
)
CONTROLS = (hardware_reservations.control, spot_market.control)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def table(lab: Lab) -> Urls:
    """The routes of all services. The real API takes PATCH wherever it takes PUT; packngo uses both."""
    return [entry for urls in SERVICES for entry in urls(lab)]


def _endpoint(lab: Lab, path: str, methods: dict[str, Endpoint]) -> Route:
    async def dispatch(request: Request) -> Response:
        settle(lab.account, lab.provisioner)
        operation = methods.get(request.method)
        if operation is None:
            raise NotImplementedInLab(f"{request.method} {request.url.path}")
        return await operation(request)

    return Route(path, dispatch, methods=_METHODS)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return refusal(error)


async def _unknown(request: Request) -> Response:
    raise NotImplementedInLab(f"{request.method} {request.url.path}")


def begin(account: Account) -> None:
    """What is there from the start, at the first start."""
    if not account.table(organizations_models.User):
        organizations_models.begin(account, account.identity)
        projects_models.begin(account, account.identity)


def api(
    account: Account,
    provisioner: Provisioner,
    store: Store,
    log: RequestLog | None = None,
    routing: Routing | None = None,
) -> ASGIApp:
    """The application, for a facility with or without a router."""
    log = log or RequestLog()
    begin(account)
    lab = Lab(account=account, provisioner=provisioner, store=store, routing=routing or Routing(account, NoRouter()))
    routes = [_endpoint(lab, BASE + path, methods) for path, methods in table(lab)]
    routes += [_endpoint(lab, "/lab" + path, methods) for urls in CONTROLS for path, methods in urls(lab)]
    everything = Route("/{path:path}", _unknown, methods=[*_METHODS, "HEAD", "OPTIONS"])
    application = Starlette(
        routes=[*control.routes(account, store, log), *routes, everything], exception_handlers={ApiError: _refused}
    )
    return Gate(application, account, log)
