"""What Afterburn's packet provider makes of the metadata: /run/metadata/afterburn."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from lab.machines.simulated import unitfile

_UNIT = "afterburn.service"


def required(root: Path) -> bool:
    """Afterburn runs only when it is enabled or something that starts requires it, as on CoreOS."""
    return _UNIT in unitfile.wanted(root)


def attributes(metadata: dict[str, Any]) -> dict[str, str]:
    """The attributes, named as in src/providers/packet/mod.rs of Afterburn 5.11."""
    result: dict[str, str] = {}
    counts: dict[str, int] = {}
    for entry in metadata["network"]["addresses"]:
        family = ipaddress.ip_address(entry["address"]).version
        kind = f"AFTERBURN_PACKET_IPV{family}_{'PUBLIC' if entry['public'] else 'PRIVATE'}"
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        result[f"{kind}_{number}"] = str(entry["address"])
        result[f"{kind}_GATEWAY_{number}"] = str(entry["gateway"])
    result["AFTERBURN_PACKET_HOSTNAME"] = str(metadata["hostname"])
    result["AFTERBURN_PACKET_PHONE_HOME_URL"] = str(metadata["phone_home_url"])
    result["AFTERBURN_PACKET_PLAN"] = str(metadata["plan"])
    return result


def write(root: Path, metadata: dict[str, Any]) -> None:
    """The attributes file."""
    path = root / "run/metadata/afterburn"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in attributes(metadata).items()))
