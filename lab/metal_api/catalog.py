"""What the API offers and never changes: metros, facilities, plans and operating systems, and fields that name these.

Ids are derived from the codes, so they are the same in every lab. Prices are in USD per hour: those of Metal in its
last years, but for n3.xlarge.opt-m4s2, c3.large.arm64 and metro sp, where they are made up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Self, TypeVar

from pydantic import PlainValidator, model_validator

from lab.metal_api.body import Input, problem

_NAMESPACE = uuid.UUID("5f1c8f9e-3c5b-4a52-9b63-0d6f3a1f7c11")
ON_DEMAND, SPOT_MARKET = "on_demand", "spot_market"


@lru_cache(maxsize=4096)
def stable_id(kind: str, code: str) -> str:
    """A UUID for a catalogue entry."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{code}"))


@dataclass(frozen=True, kw_only=True)
class Metro:
    """A metro area; the lab's own is `lb`."""

    code: str
    name: str
    country: str

    @property
    def id(self) -> str:
        return stable_id("metro", self.code)


@dataclass(frozen=True, kw_only=True)
class Facility:
    """A data centre of a metro."""

    code: str
    name: str
    metro: str

    @property
    def id(self) -> str:
        return stable_id("facility", self.code)


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive of a plan; `mib` is what the lab's machines have of it."""

    size: str
    mib: int
    kind: str = "SSD"
    category: str = "storage"


BOOT_DRIVE = Drive(size="240GB", mib=4096, category="boot")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A kind of server. What the lab gives a machine is far smaller: see `memory_mib`, `cpus` and `Drive.mib`."""

    slug: str
    cpu: str
    memory: str
    price: float
    memory_mib: int = 1024
    cpus: int = 1
    drives: tuple[Drive, ...] = (BOOT_DRIVE, Drive(size="480GB", mib=8192))
    """The operating system's is the first."""
    arch: str = "x86"
    kind: str = "standard"
    categories: tuple[str, ...] = ("compute", "current_gen")
    deployment_types: tuple[str, ...] = (ON_DEMAND, SPOT_MARKET)
    """How it can be had beside as reserved hardware; a plan with none of them is only reserved."""

    @property
    def architecture(self) -> str:
        """The kernel's name of the architecture."""
        return "aarch64" if self.arch == "arm64" else "x86_64"

    metros: tuple[str, ...] = ()
    """The metros that offer it; all metros if empty."""
    prices: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Prices by metro, if they differ from `price`."""

    @property
    def id(self) -> str:
        return stable_id("plan", self.slug)

    def offered_in(self, metro: str) -> bool:
        """Whether the metro has servers of this plan."""
        return not self.metros or metro in self.metros

    def price_in(self, metro: str) -> float:
        """USD per hour."""
        return self.prices.get(metro, self.price)


@dataclass(frozen=True, kw_only=True)
class OperatingSystem:
    """An operating system slug; only `custom_ipxe` can be provisioned in the lab."""

    slug: str
    name: str
    distro: str
    version: str
    architectures: tuple[str, ...] = ("x86", "arm64")

    @property
    def id(self) -> str:
        return stable_id("operating-system", self.slug)

    @property
    def plans(self) -> list[str]:
        """The slugs of the plans that it can be had on."""
        return [plan.slug for plan in PLANS.values() if plan.arch in self.architectures]


METROS = {
    entry.code: entry
    for entry in (
        Metro(code="lb", name="Lab", country="XX"),
        Metro(code="am", name="Amsterdam", country="NL"),
        Metro(code="da", name="Dallas", country="US"),
        Metro(code="dc", name="Washington DC", country="US"),
        Metro(code="fr", name="Frankfurt", country="DE"),
        Metro(code="ny", name="New York", country="US"),
        Metro(code="sp", name="Sao Paulo", country="BR"),
        Metro(code="sv", name="Silicon Valley", country="US"),
    )
}
FACILITIES = {
    entry.code: entry
    for entry in (
        Facility(code="lab1", name="Lab 1", metro="lb"),
        Facility(code="lab2", name="Lab 2", metro="lb"),
        Facility(code="am6", name="Amsterdam 6", metro="am"),
        Facility(code="da6", name="Dallas 6", metro="da"),
        Facility(code="da11", name="Dallas 11", metro="da"),
        Facility(code="dc13", name="Washington DC 13", metro="dc"),
        Facility(code="fr8", name="Frankfurt 8", metro="fr"),
        Facility(code="ny5", name="New York 5", metro="ny"),
        Facility(code="sp4", name="Sao Paulo 4", metro="sp"),
        Facility(code="sv15", name="Silicon Valley 15", metro="sv"),
    )
}
PLANS = {
    entry.slug: entry
    for entry in (
        Plan(slug="c3.small.x86", cpu="Intel Xeon E-2278G", memory="32GB", price=0.75, prices={"sp": 1.05}),
        Plan(slug="c3.medium.x86", cpu="AMD EPYC 7402P", memory="64GB", price=1.5, prices={"sp": 2.1}),
        Plan(slug="m3.large.x86", cpu="AMD EPYC 7502P", memory="256GB", price=3.1, prices={"sp": 4.34}),
        Plan(
            slug="s3.xlarge.x86",
            cpu="Intel Xeon 4214",
            memory="192GB",
            price=2.95,
            drives=(BOOT_DRIVE, Drive(size="8TB", mib=16384, kind="HDD")),
            categories=("storage", "current_gen"),
            deployment_types=(ON_DEMAND,),
        ),
        Plan(
            slug="c3.large.arm64",
            cpu="Ampere Altra Q80-30",
            memory="256GB",
            price=2.5,
            arch="arm64",
            metros=("lb", "da", "dc", "fr", "sv"),
        ),
        Plan(
            slug="n3.xlarge.opt-m4s2",
            cpu="Intel Xeon Gold 6314U",
            memory="1TB",
            price=7.25,
            kind="workload_optimized",
            deployment_types=(),
            metros=("lb", "da", "sv"),
        ),
    )
}
OPERATING_SYSTEMS = {
    entry.slug: entry
    for entry in (
        OperatingSystem(slug="custom_ipxe", name="Custom iPXE", distro="custom_ipxe", version="1"),
        OperatingSystem(slug="ubuntu_22_04", name="Ubuntu 22.04 LTS", distro="ubuntu", version="22.04"),
        OperatingSystem(slug="debian_12", name="Debian 12", distro="debian", version="12"),
        OperatingSystem(
            slug="windows_2022", name="Windows 2022", distro="windows", version="2022", architectures=("x86",)
        ),
    )
}
Entry = TypeVar("Entry", Metro, Facility, Plan, OperatingSystem)


def named(entries: Mapping[str, Entry], name: object) -> Entry | None:
    """An entry by its code or by its id."""
    if not isinstance(name, str):
        return None
    return entries.get(name.lower()) or next((entry for entry in entries.values() if entry.id == name), None)


def facilities_of(metro: str) -> list[Facility]:
    """The facilities of a metro."""
    return [entry for entry in FACILITIES.values() if entry.metro == metro]


def _entry(entries: Mapping[str, Entry], what: str) -> PlainValidator:
    """The entry of a code or an id."""

    def find(value: object) -> Entry:
        found = named(entries, value)
        if found is None:
            raise problem(f"{value} is not a valid {what}")
        return found

    return PlainValidator(find)


MetroField = Annotated[Metro, _entry(METROS, "metro")]
FacilityField = Annotated[Facility, _entry(FACILITIES, "facility")]
PlanField = Annotated[Plan, _entry(PLANS, "plan")]
SystemField = Annotated[OperatingSystem, _entry(OPERATING_SYSTEMS, "operating_system")]


class Place(Input):
    """Where something is to be: in a metro, or in one facility of it."""

    metro: MetroField | None = None
    facility: FacilityField | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.metro and self.facility:
            raise problem("Cannot specify both metro and facility")
        if not self.metro and not self.facility:
            raise problem("Metro can't be blank")
        return self

    @property
    def codes(self) -> tuple[str, str | None]:
        """The codes of the metro, and of the facility if it is one."""
        if self.facility:
            return self.facility.metro, self.facility.code
        assert self.metro is not None
        return self.metro.code, None
