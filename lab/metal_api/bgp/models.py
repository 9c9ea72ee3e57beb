"""BGP: a project's configuration, and sessions of Metal's routers with its devices.

Local deployments only, over IPv4: a device of the lab has no IPv6 address that a session could come from. The API
offers no way to take a project's configuration away, so there is none here. What Metal calls the events of sessions is
not written down anywhere we know of; their names are ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.metal_api.body import Body
from lab.metal_api.devices.models import GONE, Device, add_event
from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.ips.models import public_blocks
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account
from lab.network import plan

LOCAL_ASN = 65000
"""«With Local BGP the private ASN, 65000, is assigned.»"""
_MD5 = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[a-zA-Z\d]{10,20}")
"""The pattern of the API's description."""


@saved("bgp_configs", indexed=("project_id",))
@dataclass(kw_only=True)
class BgpConfig(Record):
    """What lets a project's devices speak BGP. There is at most one per project, and the API cannot take it away."""

    id: str
    project_id: str
    deployment_type: str
    asn: int
    md5: str | None
    created_at: str


@saved("bgp_sessions", indexed=("device_id", "project_id"))
@dataclass(kw_only=True)
class BgpSession(Record):
    """Metal's routers' side of BGP with one device, in one address family."""

    id: str
    project_id: str
    device_id: str
    address_family: str
    default_route: bool
    created_at: str
    updated_at: str


def config_of(account: Account, project_id: str) -> BgpConfig | None:
    """A project's configuration."""
    return next(iter(account.table(BgpConfig).where("project_id", project_id)), None)


def request_config(account: Account, project_id: str, document: Json) -> None:
    """Enable BGP for a project, at once as for every local deployment; asked again, the password is the new one."""
    body = Body(document)
    kind, asn = body.choice("deployment_type", ("local", "global"), required=True), body.integer("asn", least=0)
    md5 = body.text("md5") or None
    body.text("use_case")
    if kind == "global" and not body.problems:
        raise NotImplementedInLab("global BGP deployments")
    if asn != LOCAL_ASN:
        body.problems.append(f"Asn must be {LOCAL_ASN} in a local deployment")
    if md5 is not None and not _MD5.fullmatch(md5):
        body.problems.append(
            "Md5 must have 10 to 20 letters and digits, an uppercase, a lowercase and a digit among them"
        )
    body.check()
    known = config_of(account, project_id)
    if known is not None:
        known.md5 = md5
    else:
        account.table(BgpConfig).add(
            BgpConfig(
                id=account.chance.uuid(),
                project_id=project_id,
                deployment_type="local",
                asn=LOCAL_ASN,
                md5=md5,
                created_at=account.now(),
            )
        )
    account.routes_changed()


def create_session(account: Account, device: Device, document: Json) -> BgpSession:
    """Metal's side of BGP with a device, one per address family."""
    body = Body(document)
    family = body.choice("address_family", ("ipv4", "ipv6"), required=True)
    default_route = body.flag("default_route")
    if any(session.address_family == family for session in device_sessions(account, device)):
        body.problems.append("Address family has already been taken")
    elif family == "ipv6":
        body.problems.append("Device has no IPv6 address for this session")
    if config_of(account, device.project_id) is None:
        body.problems.append("BGP is not enabled for this project")
    if device.state == GONE:
        body.problems.append("Device is being deprovisioned")
    body.check()
    now = account.now()
    session = account.table(BgpSession).add(
        BgpSession(
            id=account.chance.uuid(),
            project_id=device.project_id,
            device_id=device.id,
            address_family=family or "",
            default_route=bool(default_route),
            created_at=now,
            updated_at=now,
        )
    )
    add_event(account, device, "bgp_session.created", f"{family} BGP session of {device.hostname} created")
    account.routes_changed()
    return session


def delete_session(account: Account, session: BgpSession) -> None:
    """Metal's routers no longer speak with the device, and what it announced is no longer routed to it."""
    device = account.table(Device)[session.device_id]
    del account.table(BgpSession)[session.id]
    add_event(
        account, device, "bgp_session.deleted", f"{session.address_family} BGP session of {device.hostname} deleted"
    )
    account.routes_changed()


def device_sessions(account: Account, device: Device) -> list[BgpSession]:
    """A device's sessions."""
    return account.table(BgpSession).where("device_id", device.id)


def project_sessions(account: Account, project_id: str) -> list[BgpSession]:
    """The sessions of all of a project's devices."""
    return account.table(BgpSession).where("project_id", project_id)


def neighbors(account: Account, device: Device) -> list[Json]:
    """What a device must know to speak BGP, one entry per session; the metadata service tells the same."""
    return [_neighbor(account, device, entry) for entry in device_sessions(account, device)]


def _neighbor(account: Account, device: Device, entry: BgpSession) -> Json:
    config = config_of(account, device.project_id)
    assert config is not None
    blocks = public_blocks(account, device.project_id)
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
