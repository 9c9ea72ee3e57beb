"""What the API offers and never changes: metros, facilities, plans, operating systems.

Ids are derived from the codes, so they are the same in every lab.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

_NAMESPACE = uuid.UUID("5f1c8f9e-3c5b-4a52-9b63-0d6f3a1f7c11")

Json = dict[str, Any]


def stable_id(kind: str, code: str) -> str:
    """A UUID for a catalogue entry."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{code}"))


@dataclass(frozen=True, kw_only=True)
class Metro:
    """A metro area; the lab's own is `lb`."""

    code: str
    name: str
    country: str

    def document(self) -> Json:
        """As the API shows it."""
        identity = stable_id("metro", self.code)
        return {
            "id": identity,
            "href": f"/metal/v1/locations/metros/{identity}",
            "name": self.name,
            "code": self.code,
            "country": self.country,
        }


@dataclass(frozen=True, kw_only=True)
class Facility:
    """A data centre of a metro."""

    code: str
    name: str
    metro: str

    def document(self) -> Json:
        """As the API shows it."""
        identity = stable_id("facility", self.code)
        return {
            "id": identity,
            "href": f"/metal/v1/facilities/{identity}",
            "name": self.name,
            "code": self.code,
            "features": ["baremetal", "layer_2", "backend_transfer", "global_ipv4", "ibx"],
            "ip_ranges": ["198.51.100.0/24"],
            "metro": METROS[self.metro].document(),
            "address": {"address": "1 Example Way", "city": self.name, "zip_code": "00000", "country": "XX"},
        }


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive of a plan; `mib` is what the lab's machines have of it."""

    size: str
    mib: int
    kind: str = "SSD"
    category: str = "storage"

    def document(self) -> Json:
        """As the API shows it."""
        return {"count": 1, "size": self.size, "type": self.kind, "category": self.category}


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

    def document(self) -> Json:
        """As the API shows it; the lab's sizes do not appear."""
        identity = stable_id("plan", self.slug)
        return {
            "id": identity,
            "href": f"/metal/v1/plans/{identity}",
            "slug": self.slug,
            "name": self.slug,
            "class": self.slug,
            "description": f"{self.slug} (emulated)",
            "line": "baremetal",
            "type": "standard",
            "legacy": False,
            "categories": ["compute"],
            "deployment_types": ["on_demand"],
            "available_in": [{"href": entry.document()["href"]} for entry in FACILITIES.values()],
            "available_in_metros": [{"href": entry.document()["href"]} for entry in METROS.values()],
            "pricing": {"hour": self.price},
            "specs": {
                "cpus": [{"count": 1, "type": self.cpu}],
                "memory": {"total": self.memory},
                "drives": [drive.document() for drive in self.drives],
                "nics": [{"count": 2, "type": "10Gbps"}],
                "features": {"raid": False, "txt": True, "uefi": True},
            },
        }


@dataclass(frozen=True, kw_only=True)
class OperatingSystem:
    """An operating system slug; only `custom_ipxe` can be provisioned in the lab."""

    slug: str
    name: str
    distro: str
    version: str

    def document(self) -> Json:
        """As the API shows it."""
        identity = stable_id("operating-system", self.slug)
        return {
            "id": identity,
            "href": f"/metal/v1/operating-systems/{identity}",
            "slug": self.slug,
            "name": self.name,
            "distro": self.distro,
            "distro_label": self.distro.title(),
            "version": self.version,
            "preinstallable": False,
            "pricing": {},
            "licensed": False,
            "provisionable_on": list(PLANS),
        }


METROS = {
    entry.code: entry
    for entry in (
        Metro(code="lb", name="Lab", country="XX"),
        Metro(code="am", name="Amsterdam", country="NL"),
        Metro(code="da", name="Dallas", country="US"),
        Metro(code="dc", name="Washington DC", country="US"),
        Metro(code="fr", name="Frankfurt", country="DE"),
        Metro(code="ny", name="New York", country="US"),
        Metro(code="sv", name="Silicon Valley", country="US"),
    )
}
FACILITIES = {
    entry.code: entry
    for entry in (
        Facility(code="lab1", name="Lab 1", metro="lb"),
        Facility(code="am6", name="Amsterdam 6", metro="am"),
        Facility(code="da11", name="Dallas 11", metro="da"),
        Facility(code="dc13", name="Washington DC 13", metro="dc"),
        Facility(code="fr8", name="Frankfurt 8", metro="fr"),
        Facility(code="ny5", name="New York 5", metro="ny"),
        Facility(code="sv15", name="Silicon Valley 15", metro="sv"),
    )
}
PLANS = {
    entry.slug: entry
    for entry in (
        Plan(slug="c3.small.x86", cpu="Intel Xeon E-2278G", memory="32GB", price=0.75),
        Plan(slug="c3.medium.x86", cpu="AMD EPYC 7402P", memory="64GB", price=1.5),
        Plan(slug="m3.small.x86", cpu="Intel Xeon E-2378G", memory="64GB", price=1.05),
        Plan(slug="m3.large.x86", cpu="AMD EPYC 7502P", memory="256GB", price=3.1),
        Plan(slug="n3.xlarge.x86", cpu="Intel Xeon Gold 6314U", memory="512GB", price=4.5),
        Plan(
            slug="s3.xlarge.x86",
            cpu="Intel Xeon 4214",
            memory="192GB",
            price=2.95,
            drives=(BOOT_DRIVE, Drive(size="8TB", mib=16384, kind="HDD")),
        ),
        Plan(slug="x1.small.x86", cpu="Intel Xeon E3-1578L", memory="32GB", price=0.4),
    )
}
OPERATING_SYSTEMS = {
    entry.slug: entry
    for entry in (
        OperatingSystem(slug="custom_ipxe", name="Custom iPXE", distro="custom_ipxe", version="1"),
        OperatingSystem(slug="ubuntu_22_04", name="Ubuntu 22.04 LTS", distro="ubuntu", version="22.04"),
        OperatingSystem(slug="debian_12", name="Debian 12", distro="debian", version="12"),
    )
}
