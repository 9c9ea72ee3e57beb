"""UEFI Secure Boot: whether a server's firmware starts only signed programs, and what it cannot boot then.

Distributions' builds of iPXE are not signed. iPXE's own releases since 2.0 come with a shim that Microsoft signed
(ipxe.org; rhboot/shim-review issue 319). That shim trusts iPXE's key, but not the key of CoreOS's kernel: iPXE would
need the distribution's shim (its command `shim`), and CoreOS publishes none for network boot.

Schema: SecureBoot (DMTF), below the System. Servers without UEFI have none. Differences between BMCs:

- Supermicro's GB300 reports the state of the current boot, and leaves SecureBootEnable out (libredfish PR 111).
- In SetupMode and AuditMode nothing is enforced, whatever else is reported (UEFI specification, 32.3; SecureBootMode).
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.bmc_settings import LIVE_ISO, BmcSettings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish.connection import word
from metal_ipi.provider.platforms.redfish.documents import NOT_THERE

_NOT_ENFORCING = frozenset({"SetupMode", "AuditMode"})
_REMEDY = (
    f"set `bootMethod: {LIVE_ISO}` in its `bmc`: CoreOS's own boot loader and kernel are signed (docs/redfish.md, "
    "Secure Boot). Or switch Secure Boot off in its firmware's settings. If its firmware has keys of yours, and iPXE "
    "and the kernel are signed with them, override secure-boot in preflight.overrides, and give that reason"
)


def state(system: Any) -> bool | None:
    """Whether it is enforced at the next boot; None if the BMC does not report it."""
    found = system.secure_boot
    if word(found.mode) in _NOT_ENFORCING:
        return False
    if isinstance(found.enabled, bool):
        return found.enabled
    current = word(found.current_boot)
    return None if current is None else current == "Enabled"


def is_on(system: Any) -> bool | None:
    """The same; None also if the BMC has no such resource, or it cannot be read."""
    from sushy import exceptions

    try:
        return state(system)
    except exceptions.MissingAttributeError:
        return None
    except exceptions.HTTPError as error:
        if error.status_code in NOT_THERE:
            return None
        raise


def refuse(where: str, enforced: bool | None, settings: BmcSettings) -> None:
    """Raise RemoteError if Secure Boot prevents the server's boot, unless the settings say to ignore it."""
    problem = None if settings.secure_boot == "ignore" else refusal(where, enforced, settings)
    if problem is not None:
        raise RemoteError(f"{problem[0]}: {problem[1]}")


def refusal(where: str, enforced: bool | None, settings: BmcSettings) -> tuple[str, str] | None:
    """Why Secure Boot prevents the server's boot, and the remedy; None if it does not."""
    if not enforced or settings.boot_method == LIVE_ISO:
        return None
    what = (
        f"{where} has Secure Boot on, and `bootMethod: {settings.boot_method}` leads to iPXE: the firmware starts "
        "only a signed iPXE, and a signed iPXE does not start CoreOS's kernel"
    )
    return what, _REMEDY
