"""The order of boot options, for BMCs whose boot override does not work. sushy does not support it, so plain HTTP
requests are sent through its session.

Schema: ComputerSystem, Boot.BootOrder (references) and Boot.BootOptions (their descriptions).
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.platforms.redfish.connection import Connection, Refused
from metal_ipi.provider.status import Say

_changed: dict[tuple[str, str], list[str]] = {}
"""The order before this process changed it, by address and System."""


async def network_first(connection: Connection, mac: str) -> bool:
    """Put the network first: the interface with this MAC address, or all that do not report theirs. Returns whether
    that worked."""

    def change(system: Any) -> bool:
        order = _order(system)
        first = _of_network(order, _options(system), mac) if order else []
        if not first:
            return False
        _changed.setdefault((connection.settings.address, system.path), order)
        _set(system, [*first, *(option for option in order if option not in first)])
        return _order_now(system)[:1] == first[:1]

    try:
        return await connection.call("to boot from the network first", change)
    except Refused:
        return False


async def restore(connection: Connection, say: Say) -> None:
    """Restore the order that `network_first` found. After a killed run it is unknown and stays changed, which does no
    harm."""

    def change(system: Any) -> bool:
        order = _changed.get((connection.settings.address, system.path))
        if order is None:
            return False
        _set(system, order)
        del _changed[connection.settings.address, system.path]
        return True

    if await connection.call("to restore its boot order", change):
        await say(f"{connection.where} has its former boot order again")


def _boot(system: Any) -> dict[str, Any]:
    return (system.json or {}).get("Boot") or {}


def _order(system: Any) -> list[str]:
    return list(_boot(system).get("BootOrder") or ())


def _order_now(system: Any) -> list[str]:
    system.refresh(force=True)
    return _order(system)


def _options(system: Any) -> dict[str, dict[str, Any]]:
    link = (_boot(system).get("BootOptions") or {}).get("@odata.id")
    if not link:
        return {}
    members = system._conn.get(link).json().get("Members") or ()
    options = [system._conn.get(member["@odata.id"]).json() for member in members]
    return {str(option.get("BootOptionReference")): option for option in options}


def _of_network(order: list[str], options: dict[str, dict[str, Any]], mac: str) -> list[str]:
    paths = {name: str(options.get(name, {}).get("UefiDevicePath") or "").lower() for name in order}
    ours = [name for name in order if f"mac({mac.replace(':', '').lower()}" in paths[name]]
    return ours or [
        name
        for name in order
        if options.get(name, {}).get("Alias") in ("Pxe", "UefiHttp") and "mac(" not in paths[name]
    ]


def _set(system: Any, order: list[str]) -> None:
    etag = system._get_etag()
    system._conn.patch(system.path, data={"Boot": {"BootOrder": order}}, etag=etag)
