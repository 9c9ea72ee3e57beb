"""Preflight check: are the servers as the stack describes them, and healthy?

`provider.inventory.rules` has the rules. Each rule has a check name of its own, by which it can be overridden.
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
    """Returns the problems of each server, and one finding for all the others together. Stores a table of each server
    in `subject.told`."""
    racked = await subject.servers.answers() if subject.servers else []
    lent = [
        (server, hardware)
        for server, hardware in (await subject.lent.answers() if subject.lent else [])
        if hardware.where
    ]
    hosts = [_host(subject, server, hardware) for server, hardware in (*racked, *lent)]
    subject.told.update({host.name: table.of(host) for host in hosts})
    found = rules.found(hosts)
    fine = [name for name, findings in found.items() if not findings]
    problems = [finding for findings in found.values() for finding in findings]
    return [*problems, ok(f"no problems with {', '.join(fine)}")] if fine else problems


def _host(subject: Subject, server: Server, hardware: Hardware) -> Host:
    bmc = subject.settings.need_bmc(server.bmc) if server.bmc is not None else None
    return Host(
        name=server.name,
        told=hardware,
        architecture=subject.plan.architecture,
        least=sizes.least(server.role, subject.plan.version or "", live=server.live),
        macs=server.macs,
        device=server.device,
        tpm2=server.tpm2,
        boot_method=bmc.boot_method if bmc else None,
        boot_mode=bmc.boot_mode if bmc else None,
        runs=subject.runs(hardware),
    )
