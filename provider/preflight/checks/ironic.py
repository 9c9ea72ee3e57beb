"""Does Ironic answer, and could each server be claimed?

What a claim changes is not tried: a server that is to be enrolled is looked at when it is. A stack that has passed
before goes on without one that is not well at the moment.
"""

from __future__ import annotations

from collections import defaultdict

from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "ironic"


async def check(subject: Subject) -> list[Finding]:
    """A finding per server that could not be claimed, and per resource class with too few nodes; one for all others."""
    assert subject.lender is not None and subject.lent is not None, "asked only where servers are had from Ironic"
    await subject.lender.nodes.conductors()  # where nobody answers, it is told once
    problems = await subject.untold(subject.lent, "correct that, and run this again")
    seen = await subject.lent.answers()
    problems += await _too_few(subject, [str(server.ironic) for server, found in seen if not found.where])
    known = [f"{server.name} ({found.where})" for server, found in seen if found.where]
    later = [server.name for server, found in seen if not found.where]
    fine = ([f"there: {', '.join(known)}"] if known else []) + ([f"to come: {', '.join(later)}"] if later else [])
    return [*problems, ok("; ".join(fine))] if fine and not problems else problems


async def _too_few(subject: Subject, names: list[str]) -> list[Finding]:
    """The kinds of servers, of those that Ironic is to choose, of which it has too few."""
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
