"""From the body of a device request to a device: validation, places, addresses, keys."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from lab.machines.base import Address
from lab.metal_api.addresses import allocate
from lab.metal_api.catalog import FACILITIES, METROS, OPERATING_SYSTEMS, PLANS
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.models import PROVISIONABLE, Device, Json
from lab.metal_api.state import Account

USERDATA_LIMIT = 65535
"""Bytes. The real limit is not written down anywhere we know of; this is a text column's."""
_HOSTNAME = re.compile(
    r"^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$"
)
_BILLING = ("hourly", "daily", "monthly", "yearly")
_UNSUPPORTED = ("hardware_reservation_id", "spot_instance", "spot_price_max", "storage", "termination_time", "features")
UPDATABLE = frozenset(
    {
        "hostname", "description", "tags", "userdata", "customdata", "always_pxe", "ipxe_script_url", "locked",
        "network_frozen", "billing_cycle",
    }
)  # fmt: skip


def order(account: Account, project_id: str, body: Json) -> Device:
    """A device in state `queued`, with addresses, not yet added to the account. Reports every problem at once."""
    account.project(project_id)
    for name in _UNSUPPORTED:
        if body.get(name):
            raise NotImplementedInLab(f"device option {name}")
    problems: list[str] = []
    plan = _plan(body.get("plan"), problems)
    system = _system(body.get("operating_system"), problems)
    facility = _facility(body, problems)
    settings = _settings(body, problems)
    keys = _keys(account, project_id, body, problems)
    _check_boot(system, settings, problems)
    if problems:
        raise Unprocessable(*problems)
    if system != PROVISIONABLE:
        raise NotImplementedInLab(f"operating_system {system} (machines of the lab boot {PROVISIONABLE} only)")
    _check_addresses(body.get("ip_addresses"))
    identity, now = account.chance.uuid(), account.now()
    taken = account.addresses_taken()
    addresses: list[Address] = [allocate(taken, public=True), allocate(taken, public=False)]
    settings.setdefault("hostname", f"{plan}-{identity[:8]}".replace(".", "-"))
    return Device(
        id=identity,
        project_id=project_id,
        plan=plan,
        facility=facility,
        operating_system=system,
        state="queued",
        created_at=now,
        updated_at=now,
        mac=mac_of(identity),
        root_password=account.chance.password(),
        addresses=addresses,
        address_ids=[account.chance.uuid() for _ in addresses],
        ssh_key_ids=keys,
        extra_keys=[str(entry["key"]) for entry in body.get("ssh_keys") or []],
        **settings,
    )


def update(device: Device, body: Json) -> None:
    """Change the fields that are given; unknown ones are ignored, as the real API does."""
    problems: list[str] = []
    settings = _settings({key: value for key, value in body.items() if key in UPDATABLE}, problems)
    if problems:
        raise Unprocessable(*problems)
    for name, value in settings.items():
        setattr(device, name, value)


def mac_of(identity: str) -> str:
    """A locally administered address that follows from the device's id (random in all but its version bits)."""
    digits = identity.replace("-", "")[-6:]
    return "52:54:00:" + ":".join(digits[index : index + 2] for index in (0, 2, 4))


def _plan(value: object, problems: list[str]) -> str:
    if not isinstance(value, str) or not value:
        problems.append("Plan can't be blank")
    elif value not in PLANS:
        problems.append(f"{value} is not a valid plan")
    else:
        return value
    return ""


def _system(value: object, problems: list[str]) -> str:
    if not isinstance(value, str) or not value:
        problems.append("Operating system can't be blank")
    elif value not in OPERATING_SYSTEMS:
        problems.append(f"{value} is not a valid operating_system")
    else:
        return value
    return ""


def _facility(body: Json, problems: list[str]) -> str:
    """The first facility named that exists, or the metro's; the texts are the real API's."""
    metro, wanted = body.get("metro"), body.get("facility")
    if metro and wanted:
        problems.append("Cannot specify both metro and facility")
        return ""
    if metro:
        if metro not in METROS:
            problems.append(f"{metro} is not a valid metro")
            return ""
        return next(entry.code for entry in FACILITIES.values() if entry.metro == metro)
    codes = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    if "any" in codes:
        return next(iter(FACILITIES))
    for code in codes:
        if code in FACILITIES:
            return str(code)
    problems.append("Facility can't be blank")
    return ""


def _settings(body: Json, problems: list[str]) -> Json:
    """The fields that can also be changed later."""
    settings: Json = {}
    for name, kind in (("description", str), ("userdata", str), ("ipxe_script_url", str), ("hostname", str)):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            problems.append(f"{name} must be a string")
        else:
            settings[name] = value
    for name in ("always_pxe", "locked", "network_frozen"):
        if body.get(name) is not None:
            settings[name] = bool(body[name])
    if not settings.get("hostname", "x"):
        del settings["hostname"]
    elif not _HOSTNAME.match(settings.get("hostname", "x")):
        problems.append("Hostname is invalid")
    if len(settings.get("userdata", "").encode()) > USERDATA_LIMIT:
        problems.append(f"Userdata is too long (maximum is {USERDATA_LIMIT} bytes)")
    if body.get("billing_cycle"):
        settings["billing_cycle"] = body["billing_cycle"]
        if body["billing_cycle"] not in _BILLING:
            problems.append("Billing cycle is not included in the list")
    if body.get("tags") is not None:
        settings["tags"] = tag_list(body["tags"], problems)
    if body.get("customdata"):
        settings["customdata"] = customdata(body["customdata"], problems)
    return settings


def customdata(value: object, problems: list[str]) -> Json:
    """An object, or one written as a string, which is how packngo sends it."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        problems.append("Customdata must be a JSON object")
        return {}
    return cast("Json", parsed)


def tag_list(value: object, problems: list[str]) -> list[str]:
    """A list of strings."""
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in cast("list[Any]", value)):
        problems.append("Tags must be a list of strings")
        return []
    return list(cast("list[str]", value))


def _keys(account: Account, project_id: str, body: Json, problems: list[str]) -> list[str]:
    """Ids of the keys the device gets: those named, or all of the project and the user when none is named."""
    for entry in body.get("ssh_keys") or []:
        if not isinstance(entry, dict) or not isinstance(cast("Json", entry).get("key"), str):
            problems.append("ssh_keys entries need a key")
    named = body.get("project_ssh_keys") or []
    for identity in named:
        key = account.keys.get(identity)
        if key is None or key.project_id != project_id:
            problems.append(f"project_ssh_keys: {identity} is not a key of this project")
    if body.get("no_ssh_keys"):
        return []
    if named or body.get("ssh_keys") or body.get("user_ssh_keys"):
        return [str(identity) for identity in named]
    return [key.id for key in account.keys.values() if key.project_id in (project_id, None)]


def _check_boot(system: str, settings: Json, problems: list[str]) -> None:
    if system != PROVISIONABLE:
        return
    url = settings.get("ipxe_script_url")
    if not url and not settings.get("userdata", "").startswith("#!ipxe"):
        problems.append(
            "ipxe_script_url or userdata starting with #!ipxe must be given when operating_system is custom_ipxe"
        )
    if url and not str(url).startswith(("http://", "https://")):
        problems.append("Ipxe script url is not a valid URL")


def _check_addresses(wanted: object) -> None:
    """Machines of the lab have one public and one private IPv4 address: anything else is refused, not ignored."""
    if not wanted:
        return
    entries = cast("list[Json]", wanted)
    if any(entry.get("address_family") != 4 for entry in entries):
        raise NotImplementedInLab("device addresses other than IPv4")
    if not any(entry.get("public") is False for entry in entries):
        raise Unprocessable("Private IPv4 address is required")
    if not any(entry.get("public") for entry in entries):
        raise NotImplementedInLab("devices without a public IPv4 address")
