"""The health of a server and its components, as a BMC reports it.

Schema: Resource, Status; PowerSupply. BMCs differ: power supplies are listed by Chassis.Power, or, since release 2020.4
of the schemas, by Chassis.PowerSubsystem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from metal_ipi.provider.inventory.facts import Part
from metal_ipi.provider.platforms.redfish.documents import Document, Documents, Untold, member, or_none

Kind = Literal["system", "processor", "memory", "disk", "power supply"]
_WORDS: dict[str, Literal["OK", "Warning", "Critical"]] = {"OK": "OK", "Warning": "Warning", "Critical": "Critical"}
_SUMMARIES: tuple[tuple[Kind, str], ...] = (("processor", "ProcessorSummary"), ("memory", "MemorySummary"))


def part(kind: Kind, name: str, document: Document, *, failing: bool = False) -> Iterator[Part]:
    """The health of a component that is present; nothing if it is not reported."""
    status = member(document, "Status")
    health = _WORDS.get(str(status.get("Health") or status.get("HealthRollup")))
    if status.get("State") == "Absent" or (health is None and not failing):
        return
    yield Part(kind=kind, name=name, health="Warning" if failing and health != "Critical" else health or "Warning")


def of_system(documents: Documents, system: Document) -> Sequence[Part]:
    """The health of all components except disks."""
    found = list(part("system", "", system))
    for kind, name in _SUMMARIES:
        found += part(kind, "", member(system, name))
    found += or_none(lambda: _power(documents, system)) or ()
    rollup = _WORDS.get(str(member(system, "Status").get("HealthRollup")))
    # The rollup covers all components. A worse rollup means a problem in a component that is not listed here.
    if rollup not in (None, "OK") and all(each.health == "OK" for each in found):
        found.append(Part(kind="system", name="as a whole", health="Warning"))
    return found


def _power(documents: Documents, system: Document) -> Sequence[Part]:
    found: list[Part] = []
    for chassis in documents.related(system, "Chassis"):
        for supply in or_none(lambda: _supplies(documents, chassis)) or ():  # noqa: B023
            found += part("power supply", str(supply.get("Name") or supply.get("MemberId") or supply.get("Id")), supply)
    return found


def _supplies(documents: Documents, chassis: Document) -> Sequence[Any]:
    if "PowerSubsystem" in chassis:
        return documents.listed(documents.linked(chassis, "PowerSubsystem"), "PowerSupplies")
    listed = documents.linked(chassis, "Power").get("PowerSupplies")
    if not isinstance(listed, list):
        raise Untold
    return [each for each in listed if isinstance(each, dict)]
