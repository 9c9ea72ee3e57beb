"""Are servers what the stack takes them for, and well?

`provider.inventory.rules` has the questions. Each has a name of its own, by which it is overridden.
"""

from __future__ import annotations

from metal_ipi.provider import sizes
from metal_ipi.provider.inventory import rules, table
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.inventory.rules import Host
from metal_ipi.provider.preflight.findings import Finding, ok
from metal_ipi.provider.preflight.plan import Server
from metal_ipi.provider.preflight.subject import Subject

NAME = "inventory"


async def check(subject: Subject) -> list[Finding]:
    """What is wrong with each server; one finding for all others together. Keeps the tables of all."""
    racked = await subject.servers.answers() if subject.servers else []
    lent = [(server, told) for server, told in (await subject.lent.answers() if subject.lent else []) if told.where]
    hosts = [_host(subject, server, told) for server, told in (*racked, *lent)]
    subject.told.update({host.name: table.of(host) for host in hosts})
    found = rules.found(hosts)
    fine = [name for name, findings in found.items() if not findings]
    problems = [finding for findings in found.values() for finding in findings]
    return [*problems, ok(f"nothing is against {', '.join(fine)}")] if fine else problems


def _host(subject: Subject, server: Server, told: Hardware) -> Host:
    bmc = subject.settings.need_bmc(server.bmc) if server.bmc is not None else None
    return Host(
        name=server.name,
        told=told,
        architecture=subject.plan.architecture,
        least=sizes.least(server.role, subject.plan.version or "", live=server.live),
        macs=server.macs,
        device=server.device,
        tpm2=server.tpm2,
        boot_method=bmc.boot_method if bmc else None,
        boot_mode=bmc.boot_mode if bmc else None,
        runs=subject.runs(told),
    )
