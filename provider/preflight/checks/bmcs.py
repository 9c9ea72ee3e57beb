"""Preflight check: does the BMC of every server answer, and accept our credentials?

For a stack that has passed the checks before, a BMC that does not answer is only a warning.
"""

from __future__ import annotations

from metal_ipi.provider.preflight.findings import Finding, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "bmcs"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per BMC that could not be asked, and one for all the others together."""
    problems = await subject.untold(subject.rack, "correct that, or make the BMC answer")
    answering = [server.name for server, _ in await subject.rack.answers()]
    if not answering:
        return problems
    return [*problems, ok(f"the BMCs of {', '.join(answering)} answer")]
