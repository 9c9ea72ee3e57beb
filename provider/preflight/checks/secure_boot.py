"""Preflight check: does the firmware of every server accept what it is to boot?

Firmware with Secure Boot refuses iPXE only after the server was switched on, and only its console shows that.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.redfish import secure_boot
from metal_ipi.provider.preflight.findings import Finding, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "secure-boot"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per server that would refuse to boot; one for all the others together."""
    problems: list[Finding] = []
    fine: list[str] = []
    for server, found in await subject.rack.answers():
        settings = subject.settings.need_bmc(str(server.bmc))
        refusal = secure_boot.refusal(found.where, found.secure_boot, settings)
        if refusal is not None:
            # A server that runs boots from its disk, whose boot loader is signed.
            level = "warning" if subject.runs(found) else "error"
            problems.append(Finding(level=level, what=refusal[0], remedy=refusal[1], host=server.name))
        else:
            state = {True: "on", False: "off", None: "not told"}[found.secure_boot]
            fine.append(f"{server.name} (Secure Boot {state}, {settings.boot_method})")
    if not fine:
        return problems
    return [*problems, ok(f"can boot as configured: {', '.join(fine)}")]
