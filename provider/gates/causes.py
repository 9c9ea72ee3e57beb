"""Known causes of failed installations, recognised in a machine's console output or in an error."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause, and what to do about it."""

    line: str
    """The line in which it was recognised."""
    what: str
    remedy: str
    fatal: bool
    """Whether waiting cannot help, because the machine has stopped."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    pattern: str
    what: str
    remedy: str
    fatal: bool = True


_ANEW = "replace the machine (make up REPLACE=<machine>, or pulumi up --replace <urn>)"

_KNOWN = (
    _Known(
        pattern=r"rootfs hash mismatch|Couldn't establish that rootfs matches initramfs",
        what="the root file system does not belong to the initramfs, or was not downloaded completely",
        remedy="use kernel, initramfs and rootfs of one release of the stream, check the boot server's files, then "
        f"{_ANEW}",
    ),
    _Known(
        pattern=r"certificate has expired|x509: certificate .*expired|certificate is not yet valid",
        what="a certificate is not valid now",
        remedy="Ignition configs of the installer are valid for 24 h: run `up` again, which renews them; check the "
        "clocks",
        fatal=False,
    ),
    _Known(
        pattern=r"Ignition failed|Ignition error:|ignition\[\d+\]: failed to fetch config.*: not found",
        what="Ignition could not apply the machine's configuration",
        remedy=f"the line names the file or URL; correct it and {_ANEW}",
    ),
    _Known(
        pattern=r"Kernel panic - not syncing",
        what="the kernel panicked",
        remedy="check the kernel arguments (`initrd=main` is needed under UEFI) and the memory of the machine",
    ),
    _Known(
        pattern=r"(Entering|You are in|Started|Reached target).{0,20}[Ee]mergency [Mm]ode|emergency\.target",
        what="the machine stopped in emergency mode",
        remedy="the journal above that line names the unit that failed",
    ),
    _Known(
        pattern=r"https?://ipxe\.org/[0-9a-f]{8}|Could not boot(?: image)?:|No such file or directory \(http",
        what="iPXE could not fetch or start a file that its script names",
        remedy="open the URL in the console log from another machine; the ipxe.org code explains the error",
        # iPXE scripts may retry.
        fatal=False,
    ),
)
_IGNITION_RETRIES = re.compile(r"ignition\[\d+\]: GET .*: attempt #\d+")


def recognise(text: str) -> Cause | None:
    """The first known cause in a text; fatal ones are preferred."""
    found: list[Cause] = []
    lines = text.replace("\r", "\n").splitlines()
    for known in _KNOWN:
        for line in lines:
            if re.search(known.pattern, line) and not _IGNITION_RETRIES.search(line):
                found.append(Cause(line=line.strip()[-300:], what=known.what, remedy=known.remedy, fatal=known.fatal))
                break
    return next((cause for cause in found if cause.fatal), found[0] if found else None)
