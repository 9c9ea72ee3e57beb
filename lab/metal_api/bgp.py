"""BGP: a project's configuration, and sessions of Metal's routers with its devices.

Local deployments only, over IPv4: a device of the lab has no IPv6 address that a session could come from. The API
offers no way to take a project's configuration away, so there is none here. What Metal calls the events of sessions is
not written down anywhere we know of; their names are ours.
"""

from __future__ import annotations

import re

from lab.metal_api.elastic import project_blocks
from lab.metal_api.exceptions import NotFound, NotImplementedInLab, Unprocessable
from lab.metal_api.models import BgpConfig, BgpSession, Device, Json
from lab.metal_api.state import GONE, Account
from lab.network import plan

LOCAL_ASN = 65000
"""«With Local BGP the private ASN, 65000, is assigned.»"""
_MD5 = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[a-zA-Z\d]{10,20}")
"""The pattern of the API's description."""


def request_config(account: Account, project_id: str, body: Json) -> None:
    """Enable BGP for a project, at once as for every local deployment; asked again, the password is the new one."""
    account.project(project_id)
    kind, asn, md5 = body.get("deployment_type"), body.get("asn"), body.get("md5") or None
    if kind == "global":
        raise NotImplementedInLab("global BGP deployments")
    problems: list[str] = []
    if kind != "local":
        problems.append("Deployment type is not included in the list")
    if asn != LOCAL_ASN:
        problems.append(f"Asn must be {LOCAL_ASN} in a local deployment")
    if md5 is not None and not (isinstance(md5, str) and _MD5.fullmatch(md5)):
        problems.append("Md5 must have 10 to 20 letters and digits, an uppercase, a lowercase and a digit among them")
    if problems:
        raise Unprocessable(*problems)
    known = account.bgp_configs.get(project_id)
    account.bgp_configs[project_id] = BgpConfig(
        id=known.id if known else account.chance.uuid(),
        project_id=project_id,
        deployment_type="local",
        asn=LOCAL_ASN,
        md5=md5,
        created_at=known.created_at if known else account.now(),
    )
    account.routes_changed()


def create_session(account: Account, device: Device, body: Json) -> BgpSession:
    """Metal's side of BGP with a device, one per address family."""
    family, default_route = body.get("address_family"), body.get("default_route") or False
    problems: list[str] = []
    if family not in ("ipv4", "ipv6"):
        problems.append("Address family is not included in the list")
    elif any(session.address_family == family for session in device_sessions(account, device)):
        problems.append("Address family has already been taken")
    elif family == "ipv6":
        problems.append("Device has no IPv6 address for this session")
    if not isinstance(default_route, bool):
        problems.append("Default route must be true or false")
    if device.project_id not in account.bgp_configs:
        problems.append("BGP is not enabled for this project")
    if device.state == GONE:
        problems.append("Device is being deprovisioned")
    if problems:
        raise Unprocessable(*problems)
    now = account.now()
    session = BgpSession(
        id=account.chance.uuid(),
        device_id=device.id,
        address_family=str(family),
        default_route=bool(default_route),
        created_at=now,
        updated_at=now,
    )
    account.bgp_sessions[session.id] = session
    account.add_event(device, "bgp_session.created", f"{family} BGP session of {device.hostname} created")
    account.routes_changed()
    return session


def update_session(account: Account, session: BgpSession, default_route: object) -> None:
    """Offer a default route, or no longer: nothing else of a session can be changed."""
    if not isinstance(default_route, bool):
        raise Unprocessable("Default route must be true or false")
    session.default_route = default_route
    session.updated_at = account.now()
    account.routes_changed()


def delete_session(account: Account, session: BgpSession) -> None:
    """Metal's routers no longer speak with the device, and what it announced is no longer routed to it."""
    device = account.device(session.device_id)
    del account.bgp_sessions[session.id]
    account.add_event(
        device, "bgp_session.deleted", f"{session.address_family} BGP session of {device.hostname} deleted"
    )
    account.routes_changed()


def session(account: Account, identity: str) -> BgpSession:
    """By id, or NotFound."""
    try:
        return account.bgp_sessions[identity]
    except KeyError:
        raise NotFound from None


def device_sessions(account: Account, device: Device) -> list[BgpSession]:
    """A device's sessions."""
    return [entry for entry in account.bgp_sessions.values() if entry.device_id == device.id]


def project_sessions(account: Account, project_id: str) -> list[BgpSession]:
    """The sessions of all of a project's devices."""
    owned = {device.id for device in account.project_devices(project_id)}
    return [entry for entry in account.bgp_sessions.values() if entry.device_id in owned]


def neighbors(account: Account, device: Device) -> list[Json]:
    """What a device must know to speak BGP, one entry per session; the metadata service tells the same."""
    return [_neighbor(account, device, entry) for entry in device_sessions(account, device)]


def _neighbor(account: Account, device: Device, entry: BgpSession) -> Json:
    config = account.bgp_configs[device.project_id]
    blocks = project_blocks(account, device.project_id)
    return {
        "address_family": 4,
        "customer_as": config.asn,
        "customer_ip": device.private_ipv4,
        "md5_enabled": config.md5 is not None,
        "md5_password": config.md5,
        "multihop": True,
        "peer_as": plan.BGP_ASN,
        "peer_ips": list(plan.BGP_PEERS),
        "routes_in": [{"route": block.network, "exact": False} for block in blocks],
        "routes_out": [{"route": "0.0.0.0/0", "exact": True}] if entry.default_route else [],
    }
