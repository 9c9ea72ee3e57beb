"""Preflight check: is the clock of this computer right? With a wrong clock, signatures (TSIG, S3) and certificates are
refused.

The check compares with the `Date` headers of the answers to the other checks, which are exact to the second.
"""

from __future__ import annotations

from datetime import timedelta

from metal_ipi.provider.preflight.findings import Finding, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "clock"
_SUSPICIOUS, _WRONG = timedelta(seconds=30), timedelta(seconds=300)
"""TSIG allows a difference of 300 seconds (RFC 8945, section 10)."""


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding. It uses the smallest difference, because not all servers can be wrong."""
    if not subject.clocks:
        return [
            warning(
                "no server reported the time",
                "check that this system's time is synchronised: `timedatectl`",
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
