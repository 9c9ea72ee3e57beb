"""BGP: a project's configuration, and sessions of Metal's routers with its devices.

Local deployments only, over IPv4: a device of the lab has no IPv6 address that a session could come from. The API
offers no way to take a project's configuration away, so there is none here. What Metal calls the events of sessions is
not written down anywhere we know of; their names are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lab.metal_api.addresses import public_networks
from lab.metal_api.body import Input
from lab.metal_api.devices import GONE, Device, add_event
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.listing import BASE, Listing, head, link
from lab.metal_api.operations import Call, operation
from lab.metal_api.records import Json
from lab.metal_api.routing import BgpConfig, BgpSession, config_of
from lab.metal_api.state import Account
from lab.network import plan
from lab.network.bgp import Seen

LOCAL_ASN = 65000
"""«With Local BGP the private ASN, 65000, is assigned.»"""


class _NewConfig(Input):
    deployment_type: Literal["local", "global"]
    asn: Annotated[int, Field(ge=0)]
    md5: Annotated[str, StringConstraints(pattern="^[a-zA-Z0-9]{10,20}$")] | None = None
    use_case: str | None = None


class _NewSession(Input):
    address_family: Literal["ipv4", "ipv6"]
    default_route: bool = False


def request_config(account: Account, project_id: str, document: Json) -> None:
    """Enable BGP for a project, at once as for every local deployment; asked again, the password is the new one."""
    wanted = _NewConfig.of({name: value for name, value in document.items() if value != ""})
    if wanted.deployment_type == "global":
        raise NotImplementedInLab("global BGP deployments")
    if wanted.asn != LOCAL_ASN:
        raise Unprocessable(f"Asn must be {LOCAL_ASN} in a local deployment")
    if (md5 := wanted.md5) and (md5.islower() or md5.isupper() or md5.isalpha() or md5.isdigit()):
        raise Unprocessable("Md5 must have an uppercase letter, a lowercase letter and a digit among its characters")
    config = config_of(account, project_id)
    if config is not None:
        config.md5 = md5
    else:
        account.make(BgpConfig, project_id=project_id, asn=LOCAL_ASN, md5=md5)
    account.routes_changed()


def neighbors(account: Account, device: Device) -> list[Json]:
    """The BGP neighbours of a device, one entry per session; the metadata service has the same data."""
    sessions, config = sessions_of(account, device), config_of(account, device.project_id)
    return [_neighbor(account, device, config, entry) for entry in sessions if config]


def _neighbor(account: Account, device: Device, config: BgpConfig, session: BgpSession) -> Json:
    return {
        "address_family": 4,
        "customer_as": config.asn,
        "customer_ip": device.private_ipv4,
        "md5_enabled": config.md5 is not None,
        "md5_password": config.md5,
        "multihop": True,
        "peer_as": plan.BGP_ASN,
        "peer_ips": list(plan.BGP_PEERS),
        "routes_in": [{"route": network, "exact": False} for network in public_networks(account, device.project_id)],
        "routes_out": [{"route": "0.0.0.0/0", "exact": True}] if session.default_route else [],
    }


def sessions_of(account: Account, device: Device) -> list[BgpSession]:
    """A device's sessions."""
    return account.table(BgpSession).where("device_id", device.id)


def _session_document(session: BgpSession, seen: Seen | None) -> Json:
    """A session as the facility's routers see it, `unknown` while they do not."""
    return head("bgp/sessions", session) | {
        "address_family": "ipv4",
        "default_route": session.default_route,
        "device": link("devices", session.device_id),
        "learned_routes": list(seen.learned) if seen else [],
        "status": ",".join(seen.states if seen else ["unknown"] * len(plan.BGP_PEERS)),
    }


async def _documents(call: Call, sessions: list[BgpSession]) -> list[Json]:
    seen = await call.lab.routing.seen()
    return [_session_document(session, seen.get(session.id)) for session in sessions]


@operation("GET /projects/{id}/bgp-config")
async def show_config(call: Call) -> Json:
    """Empty for a project that never asked for BGP: that is what the API's description says."""
    project = call.project_id
    config = config_of(call.account, project)
    if config is None:
        return {}
    return {
        "id": config.id,
        "href": f"{BASE}/bgp-configs/{config.id}",
        "status": "enabled",
        "deployment_type": "local",
        "asn": config.asn,
        "md5": config.md5,
        "max_prefix": plan.BGP_MAX_PREFIX,
        "route_object": None,
        "ranges": [],
        "sessions": await _documents(call, call.account.table(BgpSession).where("project_id", project)),
        "project": link("projects", project),
        "created_at": config.created_at,
        "requested_at": config.created_at,
    }


@operation("POST /projects/{id}/bgp-configs")
def create_config(call: Call) -> None:
    request_config(call.account, call.project_id, call.body)


@operation("GET /projects/{id}/bgp/sessions")
async def list_project_sessions(call: Call) -> Listing:
    return await _listing(call, call.account.table(BgpSession).where("project_id", call.project_id))


@operation("GET /devices/{id}/bgp/sessions")
async def list_device_sessions(call: Call) -> Listing:
    return await _listing(call, sessions_of(call.account, call.find(Device)))


async def _listing(call: Call, sessions: list[BgpSession]) -> Listing:
    documents = await _documents(call, sessions)
    return Listing(name="bgp_sessions", entries=documents, shown=lambda document: document, per_page=None)


@operation("GET /devices/{id}/bgp/neighbors")
def list_neighbors(call: Call) -> Json:
    return {"bgp_neighbors": neighbors(call.account, call.find(Device))}


@operation("POST /devices/{id}/bgp/sessions", status=201)
def create_session(call: Call) -> Json:
    """Metal's side of BGP with a device."""
    device, wanted, account = call.find(Device), _NewSession.of(call.body), call.account
    if wanted.address_family == "ipv6":
        raise Unprocessable("Device has no IPv6 address for this session")
    if sessions_of(account, device):
        raise Unprocessable("Address family has already been taken")
    if config_of(account, device.project_id) is None:
        raise Unprocessable("BGP is not enabled for this project")
    if device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")
    session = account.make(
        BgpSession, project_id=device.project_id, device_id=device.id, default_route=wanted.default_route
    )
    add_event(account, device, "bgp_session.created", f"BGP session of {device.hostname} created")
    account.routes_changed()
    return _session_document(session, None)


@operation("GET /bgp/sessions/{id}")
async def show_session(call: Call) -> Json:
    return (await _documents(call, [call.find(BgpSession)]))[0]


@operation("DELETE /bgp/sessions/{id}")
def delete_session(call: Call) -> None:
    """Metal's routers no longer speak with the device, and what it announced is no longer routed to it."""
    session, account = call.find(BgpSession), call.account
    device = account.table(Device)[session.device_id]
    del account.table(BgpSession)[session.id]
    add_event(account, device, "bgp_session.deleted", f"BGP session of {device.hostname} deleted")
    account.routes_changed()
