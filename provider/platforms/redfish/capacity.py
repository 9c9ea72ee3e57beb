"""How much memory and how many CPUs a System has, of BMCs that tell it, in MiB and threads.

Schema: ComputerSystem, MemorySummary and ProcessorSummary; Memory. sushy has neither ProcessorSummary nor Memory, and
cuts fractions off MemorySummary: both are read from what the BMC answered. BMCs differ:

- A summary of 0, of null or none at all is no answer: IBM's OpenBMC tells 0 while the server is off (ibm-openbmc/dev
  issue 498), a Huawei blade 0 always (bb-Ricardo/check_redfish issue 66), a Dell C6320 0.25 (RackHD/on-http PR 375).
  The memory modules are asked then.
- Some lack CapacityMiB of their modules (ibm-openbmc/dev issue 279): then it is not known.
"""

from __future__ import annotations

import math
from typing import Any

_LEAST_GIB = 1
"""What is told below this is a mistake: no server has so little."""


def memory_mib(system: Any) -> int | None:
    """Its memory; None where nobody tells."""
    told = _number(_member(system, "MemorySummary").get("TotalSystemMemoryGiB"))
    if told is not None and told >= _LEAST_GIB:
        return int(told * 1024)
    return _of_modules(system) or None


def cpus(system: Any) -> int | None:
    """Its threads, or its cores where only those are told; None where only sockets are."""
    summary = _member(system, "ProcessorSummary")
    for key in ("LogicalProcessorCount", "CoreCount"):
        told = _number(summary.get(key))
        if told:
            return int(told)
    return None


def _of_modules(system: Any) -> int:
    """The sum of all modules that are there; 0 where one of them does not tell."""
    link = _member(system, "Memory").get("@odata.id")
    if not link:
        return 0
    total = 0.0
    members = _fetched(system, link).get("Members")
    for listed in members if isinstance(members, list) else ():
        module = _fetched(system, listed.get("@odata.id") if isinstance(listed, dict) else None)
        if _of(module, "Status").get("State") == "Absent":
            continue
        capacity = _number(module.get("CapacityMiB"))
        if capacity is None:
            return 0
        total += capacity
    return int(total)


def _fetched(system: Any, link: Any) -> dict[str, Any]:
    """A document of the BMC; empty where it gives none, or something else."""
    if not isinstance(link, str):
        return {}
    try:
        found = system._conn.get(link).json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _of(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _member(system: Any, name: str) -> dict[str, Any]:
    return _of(system.json or {}, name)


def _number(value: Any) -> float | None:
    """A finite number; some BMCs tell numbers as text."""
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
