"""From the body of a device request to a device: validation, places, addresses, keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from lab.metal_api.body import Body
from lab.metal_api.catalog.models import (
    FACILITIES,
    METROS,
    OPERATING_SYSTEMS,
    PLANS,
    Facility,
    OperatingSystem,
    Plan,
    facilities_of,
    named,
)
from lab.metal_api.devices.models import GONE, PROVISIONABLE, Device
from lab.metal_api.devices.terms import agree, prefixes, termination_time
from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.ips.addresses import allocate
from lab.metal_api.organizations.models import user_id
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys.models import SshKey, project_keys
from lab.metal_api.state import Account

USERDATA_LIMIT = 65535
"""Bytes. The real limit is not written down anywhere we know of; this is a text column's."""
_HOSTNAME = re.compile(
    r"^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$"
)
_BILLING = ("hourly", "daily", "monthly", "yearly")
_UNSUPPORTED = ("storage", "features")


def order(account: Account, project_id: str, document: Json) -> Device:
    """A device in state `queued`, with addresses, not yet added to the account. Reports every problem at once."""
    for name in _UNSUPPORTED:
        if document.get(name):
            raise NotImplementedInLab(f"device option {name}")
    body = Body(document)
    plan, system = _plan(body), _system(body)
    places, where = _places(body)
    settings = _settings(body)
    extra, keys = _keys(account, project_id, body)
    _check_boot(system, settings, body.problems)
    if plan and system and plan.slug not in system.plans:
        body.problems.append(f"{system.slug} is not provisionable on {plan.slug}")
    end, (public, private) = termination_time(account, body), prefixes(body)
    body.check()
    assert plan is not None
    assert system is not None
    if system.slug != PROVISIONABLE:
        raise NotImplementedInLab(f"operating_system {system.slug} (machines of the lab boot {PROVISIONABLE} only)")
    terms = agree(account, project_id, body, plan=plan, places=places, where=where)
    identity, now = account.chance.uuid(), account.now()
    devices = account.table(Device)
    addresses = [
        allocate(lambda pair: devices.has("own_pairs", pair), public=is_public, prefix=prefix)
        for is_public, prefix in ((True, public), (False, private))
    ]
    settings.setdefault("hostname", f"{plan.slug}-{identity[:8]}".replace(".", "-"))
    return Device(
        id=identity,
        project_id=project_id,
        plan=plan.slug,
        operating_system=system.slug,
        state="queued",
        created_at=now,
        updated_at=now,
        mac=mac_of(identity),
        root_password=account.chance.password(),
        addresses=addresses,
        address_ids=[account.chance.uuid() for _ in addresses],
        ssh_key_ids=keys,
        extra_keys=extra,
        termination_time=end,
        **terms,
        **settings,
    )


def update(account: Account, device: Device, document: Json) -> None:
    """Change the fields that are given; unknown ones are ignored, as the real API does."""
    body = Body(document)
    settings, spot = _settings(body), body.flag("spot_instance")
    if spot and not device.spot_instance:
        body.problems.append("Spot instance can only be set to false")
    firmware = body.text("firmware_set_id")
    if device.state == GONE:
        body.problems.append("Device is being deprovisioned")
    body.check()
    if firmware:
        raise NotImplementedInLab("firmware sets")
    if spot is False and device.spot_instance:  # on demand from now on: nobody can outbid it any more
        device.spot_instance, device.spot_price_max, device.termination_time = False, None, None
    device.change(settings, account.now())


def mac_of(identity: str) -> str:
    """A locally administered address that follows from the device's id (random in all but its version bits)."""
    digits = identity.replace("-", "")[-6:]
    return "52:54:00:" + ":".join(digits[index : index + 2] for index in (0, 2, 4))


def _plan(body: Body) -> Plan | None:
    value = body.text("plan", required=True)
    plan = named(PLANS, value)
    if value and plan is None:
        body.problems.append(f"{value} is not a valid plan")
    return plan


def _system(body: Body) -> OperatingSystem | None:
    value = body.text("operating_system", required=True)
    system = named(OPERATING_SYSTEMS, value)
    if value and system is None:
        body.problems.append(f"{value} is not a valid operating_system")
    return system


def _places(body: Body) -> tuple[Sequence[Facility], str]:
    """Where it may stand, the best first, and what an error calls that; the texts are the real API's."""
    metro, wanted = body.document.get("metro"), body.document.get("facility")
    if metro and wanted:
        body.problems.append("Cannot specify both metro and facility")
    elif metro == "any":
        return list(FACILITIES.values()), "metro any"
    elif metro:
        found = named(METROS, metro)
        if found is not None:
            return facilities_of(found.code), f"metro {found.code}"
        body.problems.append(f"{metro} is not a valid metro")
    else:
        codes = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
        chosen: dict[str, Facility] = {}
        for code in codes:
            facility = named(FACILITIES, code)
            chosen |= {code: entry for code, entry in FACILITIES.items() if code not in chosen} if code == "any" else {}
            chosen |= {facility.code: facility} if facility and facility.code not in chosen else {}
        if chosen:
            return list(chosen.values()), f"facility {', '.join(str(code) for code in codes)}"
        body.problems.append("Facility can't be blank")
    return (), ""


def _settings(body: Body) -> Json:
    """The fields that can also be changed later, where they are given."""
    settings: Json = {name: body.text(name) for name in ("description", "userdata", "ipxe_script_url")}
    settings["hostname"] = body.text("hostname") or None
    settings |= {name: body.flag(name) for name in ("always_pxe", "locked", "network_frozen")}
    settings["tags"], settings["customdata"] = body.texts("tags"), body.mapping("customdata")
    settings["billing_cycle"] = body.choice("billing_cycle", _BILLING)
    if settings["hostname"] and not _HOSTNAME.match(settings["hostname"]):
        body.problems.append("Hostname is invalid")
    if len((settings["userdata"] or "").encode(errors="replace")) > USERDATA_LIMIT:
        body.problems.append(f"Userdata is too long (maximum is {USERDATA_LIMIT} bytes)")
    return {name: value for name, value in settings.items() if value is not None}


def _keys(account: Account, project_id: str, body: Body) -> tuple[list[str], list[str]]:
    """Public keys given in the request, and ids of registered ones.

    Those are the ones named, or all of the project when none is named. The lab's user has no keys of their own.
    """
    extra, named_keys, users = body.objects("ssh_keys"), body.texts("project_ssh_keys"), body.texts("user_ssh_keys")
    if any(not isinstance(entry.get("key"), str) for entry in extra or ()):
        body.problems.append("ssh_keys entries need a key")
    given = [str(entry.get("key")) for entry in extra or ()]
    for identity in named_keys or ():
        key = account.table(SshKey).get(identity)
        if key is None or key.project_id != project_id:
            body.problems.append(f"project_ssh_keys: {identity} is not a key of this project")
    for identity in users or ():
        if identity != user_id(account):
            body.problems.append(f"user_ssh_keys: {identity} is not a user of this project")
    if body.flag("no_ssh_keys"):
        return [], []
    if named_keys or extra or users:
        return given, named_keys or []
    return given, [key.id for key in project_keys(account, project_id)]


def _check_boot(system: OperatingSystem | None, settings: Json, problems: list[str]) -> None:
    if system is None or system.slug != PROVISIONABLE:
        return
    url = settings.get("ipxe_script_url")
    if not url and not settings.get("userdata", "").startswith("#!ipxe"):
        problems.append(
            "ipxe_script_url or userdata starting with #!ipxe must be given when operating_system is custom_ipxe"
        )
    if url and not str(url).startswith(("http://", "https://")):
        problems.append("Ipxe script url is not a valid URL")
