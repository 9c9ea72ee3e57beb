"""UEFI Secure Boot: whether a server's firmware starts only what is signed, and what it could not start then.

iPXE as distributions build it is signed by nobody. Its own releases since 2.0 come with a shim that Microsoft signed
(ipxe.org; rhboot/shim-review issue 319), which knows iPXE's key, and not that of CoreOS's kernel: for that, iPXE would
have to be told the distribution's shim (its command `shim`), and CoreOS publishes none for network boot.

Schema: SecureBoot (DMTF), below the System. Servers without UEFI have none. Differences between BMCs:

- Supermicro's GB300 tells the state of the current boot and leaves SecureBootEnable out (libredfish PR 111).
- In SetupMode and AuditMode nothing is enforced, whatever else is told (UEFI specification, 32.3; SecureBootMode).
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
    "Secure Boot). Or switch Secure Boot off in its firmware's settings. Where its firmware has keys of yours, and "
    "iPXE and the kernel are signed with them, set secure-boot in preflight.overrides, with that reason"
)


def state(system: Any) -> bool | None:
    """Whether it holds at the next boot; None where the BMC does not tell."""
    found = system.secure_boot
    if word(found.mode) in _NOT_ENFORCING:
        return False
    if isinstance(found.enabled, bool):
        return found.enabled
    current = word(found.current_boot)
    return None if current is None else current == "Enabled"


def told(system: Any) -> bool | None:
    """The same; None also where the BMC has no such part: it is not linked, or what is linked cannot be had."""
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
    """Raises RemoteError where the server could not boot what it is to boot, unless its owner knows better."""
    told = None if settings.secure_boot == "ignore" else refusal(where, enforced, settings)
    if told is not None:
        raise RemoteError(f"{told[0]}: {told[1]}")


def refusal(where: str, enforced: bool | None, settings: BmcSettings) -> tuple[str, str] | None:
    """Why a server cannot boot what it is to boot, and the remedy; None where nothing is known against it."""
    if not enforced or settings.boot_method == LIVE_ISO:
        return None
    what = (
        f"{where} has Secure Boot on, and `bootMethod: {settings.boot_method}` leads to iPXE: firmware does not start "
        "it unless it is signed, and a signed one does not start CoreOS's kernel"
    )
    return what, _REMEDY
