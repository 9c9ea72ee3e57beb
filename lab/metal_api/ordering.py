"""From the body of an order or of a change to a device: what may be given, where it stands, its addresses and keys.

The API's own words for what it refuses of reserved servers, networks and ends are not written down anywhere we know of;
these are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from lab.metal_api import capacity
from lab.metal_api.addresses import PREFIX, allocate
from lab.metal_api.body import Input, Mapping, Moment, problem
from lab.metal_api.catalog import (
    ON_DEMAND,
    SPOT_MARKET,
    Facility,
    FacilityField,
    MetroField,
    PlanField,
    SystemField,
    facilities_of,
)
from lab.metal_api.devices import GONE, PROVISIONABLE, Device
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.hardware_reservations import choose
from lab.metal_api.records import Json
from lab.metal_api.ssh_keys import keys_of
from lab.metal_api.state import Account, timestamp

USERDATA_LIMIT = 65535
"""Bytes. The real limit is not written down anywhere we know of; this is a text column's."""
LARGEST = 28
"""The shortest prefix of a network that a device can be ordered with."""
_HOSTNAME = re.compile(
    r"^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$"
)
UNSUPPORTED = (
    *("features", "firmware_set_id", "locked", "network_frozen", "no_ssh_keys", "private_ipv4_subnet_size"),
    *("public_ipv4_subnet_size", "spot_instance", "spot_price_max", "ssh_keys", "storage", "user_ssh_keys"),
)
"""Fields that are answered with 501 when they ask for something."""
SETTINGS = (
    *("description", "userdata", "ipxe_script_url", "hostname", "always_pxe", "tags", "customdata"),
    "billing_cycle",
)
"""The fields that can also be changed later."""


def _hostname(text: str) -> str:
    if text and not _HOSTNAME.match(text):
        raise problem("Hostname is invalid")
    return text


def _userdata(text: str) -> str:
    if len(text.encode(errors="replace")) > USERDATA_LIMIT:
        raise problem(f"Userdata is too long (maximum is {USERDATA_LIMIT} bytes)")
    return text


class _Change(Input):
    """The fields that can be changed at any time."""

    description: str | None = None
    userdata: Annotated[str, AfterValidator(_userdata)] = ""
    ipxe_script_url: str | None = None
    hostname: Annotated[str, AfterValidator(_hostname)] = ""
    always_pxe: bool = False
    tags: list[str] = Field(default_factory=list[str])
    customdata: Mapping = Field(default_factory=dict[str, Any])
    billing_cycle: Literal["hourly", "daily", "monthly", "yearly"] = "hourly"


class _AddressWish(Input):
    address_family: Literal[4, 6]
    public: bool = True
    cidr: int | None = None
    ip_reservations: list[str] = Field(default_factory=list[str])


class _Order(_Change):
    plan: PlanField
    operating_system: SystemField
    metro: MetroField | None = None
    facility: (
        Annotated[list[FacilityField], BeforeValidator(lambda it: it if isinstance(it, list) else [it])] | None
    ) = None
    project_ssh_keys: list[str] | None = None
    hardware_reservation_id: str | None = None
    termination_time: Moment | None = None
    ip_addresses: list[_AddressWish] = Field(default_factory=list[_AddressWish])

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.metro and self.facility:
            raise problem("Cannot specify both metro and facility")
        if not self.metro and not self.facility:
            raise problem("Facility can't be blank")
        if self.plan.slug not in self.operating_system.plans:
            raise problem(f"{self.operating_system.slug} is not provisionable on {self.plan.slug}")
        if self.operating_system.slug != PROVISIONABLE:
            return self
        if not self.ipxe_script_url and not self.userdata.startswith("#!ipxe"):
            raise problem(
                "ipxe_script_url or userdata starting with #!ipxe must be given when operating_system is custom_ipxe"
            )
        if self.ipxe_script_url and not self.ipxe_script_url.startswith(("http://", "https://")):
            raise problem("Ipxe script url is not a valid URL")
        return self

    @property
    def facilities(self) -> Sequence[Facility]:
        """The possible facilities, the preferred one first."""
        return self.facility or facilities_of(self.metro.code if self.metro else "")

    @property
    def where(self) -> str:
        """The same for an error message."""
        if self.metro:
            return f"metro {self.metro.code}"
        return f"facility {', '.join(each.code for each in self.facility or ())}"


def order(account: Account, project_id: str, document: Json, *, bid: float | None = None) -> Device:
    """A device in state `queued`, with addresses, not yet added to the account; with a `bid` one of the spot market."""
    _supported(document)
    wanted = _Order.of(document)
    end = wanted.termination_time
    if end and end <= timestamp(account.clock.now()):
        raise Unprocessable("Termination time must be in the future")
    if wanted.operating_system.slug != PROVISIONABLE:
        raise NotImplementedInLab(
            f"operating_system {wanted.operating_system.slug} (machines of the lab boot {PROVISIONABLE} only)"
        )
    keys, prefixes = _keys(account, project_id, wanted), _prefixes(wanted)
    facility = _place(account, project_id, wanted, SPOT_MARKET if bid else ON_DEMAND)
    identity, now, devices = account.chance.uuid(), account.now(), account.table(Device)
    addresses = [
        allocate(lambda pair: devices.has("own_pairs", pair), public=public, prefix=prefix)
        for public, prefix in prefixes.items()
    ]
    settings = {name: value for name, value in wanted.given(*SETTINGS).items() if name != "hostname"}
    return Device(
        id=identity,
        project_id=project_id,
        hostname=wanted.hostname or f"{wanted.plan.slug}-{identity[:8]}".replace(".", "-"),
        plan=wanted.plan.slug,
        operating_system=wanted.operating_system.slug,
        state="queued",
        created_at=now,
        updated_at=now,
        mac=mac_of(identity),
        root_password=account.chance.password(),
        addresses=addresses,
        address_ids=[account.chance.uuid() for _ in addresses],
        ssh_key_ids=keys,
        termination_time=end,
        spot_price_max=bid,
        **facility,
        **settings,
    )


def update(account: Account, device: Device, document: Json) -> None:
    """Change the fields that are given; unknown ones are ignored, as the real API does."""
    _supported(document)
    wanted = _Change.of(document)
    if device.state == GONE:
        raise Unprocessable("Device is being deprovisioned")
    changes = wanted.given(*SETTINGS)
    device.change({**changes, "hostname": wanted.hostname or device.hostname}, account.now())


def mac_of(identity: str) -> str:
    """A locally administered address that follows from the device's id (random in all but its version bits)."""
    digits = identity.replace("-", "")[-6:]
    return "52:54:00:" + ":".join(digits[index : index + 2] for index in (0, 2, 4))


def _supported(document: Json) -> None:
    for name in UNSUPPORTED:
        if document.get(name):
            raise NotImplementedInLab(f"device option {name}")


def _keys(account: Account, project_id: str, wanted: _Order) -> list[str]:
    """The ids of the keys that are named, or of all of the project when none is named."""
    known = [key.id for key in keys_of(account, project_id)]
    for identity in wanted.project_ssh_keys or ():
        if identity not in known:
            raise Unprocessable(f"project_ssh_keys: {identity} is not a key of this project")
    return wanted.project_ssh_keys or known


def _place(account: Account, project_id: str, wanted: _Order, terms: str) -> dict[str, str]:
    """Facility and reservation; Unprocessable if the order cannot be met."""
    plan, reservation = wanted.plan, wanted.hardware_reservation_id
    if reservation:
        codes = [each.code for each in wanted.facilities]
        chosen = choose(account, project_id, reservation, plan=plan.slug, facilities=codes)
        return {"facility": chosen.facility, "hardware_reservation_id": chosen.id}
    if terms not in plan.deployment_types:
        raise Unprocessable(f"{plan.slug} is not available {terms.replace('_', ' ')}")
    facility = capacity.choose(account, wanted.facilities, plan)
    if facility is None:
        raise Unprocessable(f"The {wanted.where} has no provisionable {plan.slug} servers matching your criteria")
    return {"facility": facility.code}


def _prefixes(wanted: _Order) -> dict[bool, int]:
    """The prefix lengths of the public and of the private network of a device. Values that the lab's machines do not
    support are refused."""
    if any(wish.address_family != 4 or wish.ip_reservations for wish in wanted.ip_addresses):
        raise NotImplementedInLab("device addresses other than IPv4, or out of IP reservations")
    prefixes = {wish.public: PREFIX if wish.cidr is None else wish.cidr for wish in wanted.ip_addresses}
    if wanted.ip_addresses and False not in prefixes:
        raise Unprocessable("Private IPv4 address is required")
    if wanted.ip_addresses and True not in prefixes:
        raise NotImplementedInLab("devices without a public IPv4 address")
    for public, prefix in prefixes.items():
        if not LARGEST <= prefix <= PREFIX:
            raise Unprocessable(
                f"{'Public' if public else 'Private'} ipv4 subnet size must be from {LARGEST} to {PREFIX}"
            )
    return {public: prefixes.get(public, PREFIX) for public in (True, False)}
