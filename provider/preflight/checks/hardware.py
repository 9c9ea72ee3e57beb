"""Preflight check: have the machines enough memory and processors? `provider.sizes` has the figures and their sources.

Too little memory is an error, even where OpenShift only documents the minimum: such machines fail during the
installation or later. Too few processors is a warning: the cluster is slow, and BMCs count processors in different
ways. A value that the BMC does not report is never an error. For a server that runs already, a problem is only a
warning, because its installation is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from metal_ipi.provider import sizes
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.orders import CONTROL_PLANE
from metal_ipi.provider.preflight.account import Document
from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.plan import Server
from metal_ipi.provider.preflight.subject import Subject
from metal_ipi.provider.sizes import GIB, Least

NAME = "hardware"
_DECIMAL = 2**30 / 10**9
"""Some BMCs take the gigabytes of memory modules for powers of ten, and report 59.6 GiB for 64 (Dell R640 with firmware
of 2020: bb-Ricardo/check_redfish issue 48). Firmware also reserves a little memory for itself."""
_PLAN_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([GT])i?B", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """What is known of one machine, or of several equal ones."""

    name: str
    """The name that messages use."""
    memory_mib: float | None
    cpus: int | None
    least: Least
    remedy: str
    """What to do if it has too little."""
    ask: str
    """What to look at if the amount is unknown."""
    runs: bool = False
    """Whether it is installed already."""
    host: str = ""
    """The name of the server; empty for machines that are no servers of the stack."""


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per machine that has too little or an unknown amount, and one for all the others together."""
    machines = [*_virtual(subject), *await _servers(subject), *await _ordered(subject)]
    problems = [
        replace(finding, host=machine.host)
        for machine in machines
        for finding in (*_memory(machine), *_processors(machine))
    ]
    enough = [
        f"{machine.name} {machine.memory_mib / GIB:g} GiB"
        for machine in machines
        if machine.memory_mib is not None and machine.memory_mib >= machine.least.memory_mib
    ]
    return [*problems, ok(f"enough memory: {', '.join(enough)}")] if enough else problems


def _least(subject: Subject, role: str, *, live: bool, alone: bool = False) -> Least:
    return sizes.least(role, subject.plan.version or "", live=live, alone=alone)


def _virtual(subject: Subject) -> list[_Machine]:
    """The virtual machine that is to bootstrap the cluster, if there is one."""
    return [
        _Machine(
            name="platform.bootstrap (a virtual machine)",
            memory_mib=server.memory_mib,
            cpus=server.cpus,
            least=_least(subject, server.role, live=server.live),
            remedy=f"raise platform.bootstrap.memory (MiB), to {sizes.LOCAL_VM_MIB} for instance",
            ask="platform.bootstrap.memory",
        )
        for server in subject.plan.servers
        if server.bmc is None and server.ironic is None
    ]


async def _servers(subject: Subject) -> list[_Machine]:
    """The servers whose BMCs answer (`bmcs` reports the others), and those that Ironic has inspected."""
    racked = await subject.servers.answers() if subject.servers else []
    lent = await subject.lent.answers() if subject.lent else []
    return [
        *(_server(subject, server, found, named=server.bmc == server.name) for server, found in racked),
        # Most of Ironic's servers are inspected only after they are claimed.
        *(_server(subject, server, found) for server, found in lent if found.memory_mib is not None),
    ]


def _server(subject: Subject, server: Server, found: Hardware, *, named: bool = False) -> _Machine:
    """`named`: `found.where` contains the server's name already."""
    return _Machine(
        name=found.where if named else f"{server.name}, {found.where}",
        memory_mib=found.memory_mib,
        cpus=found.cpus,
        least=_least(subject, server.role, live=server.live, alone=len(subject.plan.servers) == 1),
        remedy=_LEND_ANOTHER if server.live and server.role != CONTROL_PLANE else _TAKE_ANOTHER,
        ask="its memory",
        runs=subject.runs(found),
        host=server.name,
    )


_TAKE_ANOTHER = "use another server, or add memory"
_LEND_ANOTHER = (
    "lend another server (platform.bootstrap.server), add memory, or use a virtual machine (platform.bootstrap.type "
    "local-vm)"
)


async def _ordered(subject: Subject) -> list[_Machine]:
    """The machines that are still to be ordered."""
    if subject.account is None:
        return []
    try:
        plans = await subject.account.plans()
    except ProviderError:
        return []  # the check `plans` makes the same request, and reports the error
    return [
        _Machine(
            name=f"{order.role} machines (plan {order.plan})",
            memory_mib=_memory_of(plans[order.plan]),
            cpus=None,  # plans name sockets, not processors
            least=_least(subject, order.role, live=order.role == "bootstrap"),
            remedy="choose a larger plan",
            ask="the plan's memory",
        )
        for order, _ in await subject.missing()
        if order.plan in plans  # a plan that does not exist is reported by the check `plans`
    ]


def _memory_of(plan: Document) -> float | None:
    """The memory of a plan in MiB, from its specs: `{"memory": {"total": "32GB"}}`, where GB means GiB."""
    total = ((plan.get("specs") or {}).get("memory") or {}).get("total")
    found = _PLAN_MEMORY.fullmatch(str(total).strip())
    return None if found is None else float(found[1]) * GIB * (GIB if found[2].upper() == "T" else 1)


def _memory(machine: _Machine) -> list[Finding]:
    least, has = machine.least.memory_mib, machine.memory_mib
    needs = f"it needs {least / GIB:g} GiB, {machine.least.memory_source}"
    if has is None:
        untold = f"{machine.name} does not report its memory: {needs}"
        return [warning(untold, f"check {machine.ask} yourself")]
    if has >= least:
        return []
    what = f"{machine.name} has {has / GIB:.1f} GiB of memory: {needs}"
    if has * _DECIMAL >= least:
        remedy = "compare it with the installed memory: some BMCs report 7 % too little, and then it is enough"
        return [warning(what, remedy)]
    if machine.runs:
        return [warning(f"{what}, and it runs already", machine.remedy)]
    return [error(what, machine.remedy)]


def _processors(machine: _Machine) -> list[Finding]:
    if machine.cpus is None or machine.cpus >= machine.least.cpus:
        return []
    what = f"{machine.name} has {machine.cpus} CPUs, and {machine.least.asked_by} asks for {machine.least.cpus}"
    return [warning(what, "expect it to be slow, or use another machine")]
