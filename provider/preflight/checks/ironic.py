"""Preflight check: does Ironic answer, and can each server be claimed?

The check changes nothing: a server that is still to be enrolled is looked at when it is enrolled. For a stack that has
passed the checks before, a server with a problem is only a warning.
"""

from __future__ import annotations

from collections import defaultdict

from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "ironic"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per server that cannot be claimed and per resource class with too few nodes; one finding if
    all is well."""
    assert subject.lender is not None and subject.lent is not None, "only for servers of Ironic"
    await subject.lender.nodes.conductors()  # if Ironic does not answer, this reports it once
    problems = await subject.untold(subject.lent, "correct that, and run the same command again")
    seen = await subject.lent.answers()
    problems += await _too_few(subject, [str(server.ironic) for server, found in seen if not found.where])
    known = [f"{server.name} ({found.where})" for server, found in seen if found.where]
    later = [server.name for server, found in seen if not found.where]
    fine = ([f"there: {', '.join(known)}"] if known else []) + ([f"to come: {', '.join(later)}"] if later else [])
    return [*problems, ok("; ".join(fine))] if fine and not problems else problems


async def _too_few(subject: Subject, names: list[str]) -> list[Finding]:
    """Reports the resource classes in which fewer nodes are free than Ironic has to choose."""
    assert subject.lender is not None
    wanted: defaultdict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    for name in names:
        server = subject.settings.need_ironic_server(name)
        if server.driver is None and server.resource_class is not None:
            wanted[server.resource_class, frozenset(server.traits)].append(name)
    problems: list[Finding] = []
    for (resource_class, traits), servers in wanted.items():
        free = await subject.lender.nodes.free(resource_class, traits)
        if free < len(servers):
            also = f" with the traits {', '.join(sorted(traits))}" if traits else ""
            problems.append(
                error(
                    f"{free} nodes of the resource class {resource_class}{also} are free, and {len(servers)} are "
                    f"wanted: {', '.join(servers)}",
                    "free some (`baremetal node undeploy`), enrol more, or correct resourceClass and traits",
                )
            )
    return problems
