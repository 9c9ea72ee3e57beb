"""Is our clock right? Signatures (TSIG, S3) and certificates are refused when it is not.

Others' clocks are known from the dates of their answers to the other checks, which are to the second.
"""

from __future__ import annotations

from datetime import timedelta

from metal_ipi.provider.preflight.findings import Finding, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "clock"
_SUSPICIOUS, _WRONG = timedelta(seconds=30), timedelta(seconds=300)
"""TSIG allows 300 seconds (RFC 8945, section 10)."""


async def check(subject: Subject) -> list[Finding]:
    """One finding: most of those who were asked cannot all be wrong, so the least difference counts."""
    if not subject.clocks:
        return [
            warning(
                "nobody who was asked said what time it is",
                "see that this system's time is synchronised: `timedatectl`",
            )
        ]
    who, skew = min(
        ((who, theirs - ours) for who, (theirs, ours) in subject.clocks.items()), key=lambda item: abs(item[1])
    )
    seconds = f"{abs(skew).total_seconds():.0f} s"
    if abs(skew) <= _SUSPICIOUS:
        return [ok(f"within {seconds} of {who}")]
    way = "behind" if skew > timedelta() else "ahead of"
    return [
        Finding(
            level="error" if abs(skew) > _WRONG else "warning",
            what=f"this system's clock is {seconds} {way} that of {who}",
            remedy="synchronise this system's time: `timedatectl set-ntp true`",
        )
    ]
