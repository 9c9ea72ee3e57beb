"""Deviations of BMCs from the specification, each with its source.

Deviations that sushy handles are not here: If-Match and ETags in their weak and strong forms (Connector.patch), boot
settings in a resource of their own (System.set_system_boot_options), `UsbCd` instead of `Cd` on Supermicro X11 and X12,
and InsertMedia's parameters on Supermicro, Lenovo, NVIDIA and Cisco (VirtualMedia.insert_media).
"""

from __future__ import annotations

import re
from typing import Any

# Ironic, drivers/modules/redfish/management.py: VENDORS_REQUIRING_FULL_BOOT_REQUEST.
_FULL_REQUEST = ("american megatrends international", "ami", "asrockrack", "redfish_compatible")


def passes(status: int, text: str) -> bool:
    """Whether a refusal is transient."""
    return (
        # sushy, Connector.check_retry_on_exception: iDRAC and iLO are not ready after the previous operation.
        "SYS518" in text
        or ("iLO" in text and "InvalidOperationForSystemState" in text)
        # Ironic, management.py, _is_during_post_error: iLO takes no boot settings during POST.
        or (status == 400 and "UnableToModifyDuringSystemPOST" in text)
        # Ironic, power.py, _set_power_state: iDRAC10 refuses «On» for a while after it was switched off.
        or (status == 409 and "ActionParameterValueConflict" in text)
    )


def boot_options(system: Any, enabled: Any, mode: Any) -> dict[str, Any]:
    """The parameters to send with the boot target: `enabled` and `mode`, without those that this BMC does not accept.

    Ironic, management.py, _set_boot_device: most BMCs accept `enabled` only when it changes (OpenStack story 2007355),
    Supermicro always requires it (story 2008547), and AMI's firmware requires target, `enabled` and mode together.
    """
    import sushy

    vendor = (system.manufacturer or "").lower()
    boot = system.boot or {}
    if any(re.search(rf"\b{name}\b", vendor) for name in _FULL_REQUEST):
        return {"enabled": enabled, "mode": mode or boot.get("mode") or sushy.BOOT_SOURCE_MODE_UEFI}
    wanted: dict[str, Any] = {}
    if vendor == "supermicro" or boot.get("enabled") != enabled:
        wanted["enabled"] = enabled
    # Like Ironic, leave the mode out if it does not change.
    if mode is not None and boot.get("mode") != mode:
        wanted["mode"] = mode
    return wanted


def next_slot(error: Exception) -> bool:
    """Whether another virtual media device may accept what this one refuses.

    Ironic, boot.py, _insert_vmedia_in_resource: Cisco lists devices that serve only its own viewer; they have no
    InsertMedia, or answer 400 or 405.
    """
    from sushy import exceptions

    if isinstance(error, exceptions.MissingActionError):
        return True
    return isinstance(error, exceptions.HTTPError) and error.status_code in (400, 405)


def takes_discs(media_types: Any) -> bool:
    """Whether a virtual media device is a drive for discs. Cisco UCS has devices for DVDs only (Launchpad 2031595)."""
    import sushy

    return bool({sushy.VIRTUAL_MEDIA_CD, sushy.VIRTUAL_MEDIA_DVD} & set(media_types or ()))


def is_for_discs(media_types: Any) -> bool:
    """The same for Redfish's own words."""
    return bool({"CD", "DVD"} & set(media_types if isinstance(media_types, list) else ()))
