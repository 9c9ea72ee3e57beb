"""The memory (in MiB) and processors (in threads) of a System, as BMCs report them.

Schema: ComputerSystem, MemorySummary and ProcessorSummary; Memory; Processor. BMCs differ:

- A summary of 0 or null, or no summary, is not an answer: IBM's OpenBMC reports 0 while the server is off
  (ibm-openbmc/dev issue 498), a Huawei blade always 0 (bb-Ricardo/check_redfish issue 66), a Dell C6320 0.25
  (RackHD/on-http PR 375). Then the memory modules are read.
- Some lack CapacityMiB of their modules (ibm-openbmc/dev issue 279): then the memory is unknown.
- Graphics processors are among the processors.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.platforms.redfish.documents import Document, Documents, Untold, member, number

_LEAST_GIB = 1
"""A smaller value is a mistake: no server has so little."""
_ARCHITECTURES = {"x86-64": "x86_64", "x86": "x86_64", "ARM-A64": "aarch64", "ARM": "aarch64"}


def memory_mib(documents: Documents, system: Document) -> int | None:
    """Its memory in MiB; None if it is not reported."""
    total = number(member(system, "MemorySummary").get("TotalSystemMemoryGiB"))
    if total is not None and total >= _LEAST_GIB:
        return int(total * 1024)
    return _of_modules(documents, system) or None


def cpus(system: Document) -> int | None:
    """Its threads, or its cores if only those are reported; None if only sockets are."""
    summary = member(system, "ProcessorSummary")
    for key in ("LogicalProcessorCount", "CoreCount"):
        count = number(summary.get(key))
        if count:
            return int(count)
    return None


def architecture(documents: Documents, system: Document) -> str | None:
    """`x86_64`, `aarch64`, or the BMC's word for another one; None if it is not reported. Raises Untold."""
    for processor in documents.listed(system, "Processors"):
        if processor.get("ProcessorType") not in (None, "CPU"):
            continue
        for key in ("InstructionSet", "ProcessorArchitecture"):
            if word := _word(processor.get(key)):
                return _ARCHITECTURES.get(word, word)
    return None


def _word(value: Any) -> str | None:
    """A word; the first iDRACs with Redfish listed it as `[{"Member": "x86-64"}]`."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0].get("Member")
    return value if isinstance(value, str) and value else None


def _of_modules(documents: Documents, system: Document) -> int:
    """The sum of all present modules; 0 if one of them does not report its size."""
    total = 0.0
    try:
        for module in documents.listed(system, "Memory"):
            if member(module, "Status").get("State") == "Absent":
                continue
            capacity = number(module.get("CapacityMiB"))
            if capacity is None:
                return 0
            total += capacity
    except Untold:
        return 0
    return int(total)
