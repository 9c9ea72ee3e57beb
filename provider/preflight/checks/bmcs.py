"""Does every server's BMC answer, and let us in?

A stack that has passed before goes on without one that does not answer at the moment.
"""

from __future__ import annotations

from metal_ipi.provider.preflight.findings import Finding, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "bmcs"


async def check(subject: Subject) -> list[Finding]:
    """A finding per BMC that does not tell of its server; one for all others together."""
    problems = await subject.untold(subject.rack, "correct that, or have the BMC answer")
    answering = [server.name for server, _ in await subject.rack.answers()]
    if not answering:
        return problems
    return [*problems, ok(f"the BMCs of {', '.join(answering)} answer")]
